"""Guards: a transaction must not end while an act is open in it, and an act has one database."""

from __future__ import annotations

from weakref import WeakSet

from sqlalchemy import event
from sqlalchemy.engine import Connection
from sqlalchemy.orm import Session, SessionTransaction

from takeback.errors import UsageError
from takeback_acts.rows.library import station
from takeback_acts.rows.library.acts import Act

_sessions: WeakSet[Session] = WeakSet()
_connections: WeakSet[Connection] = WeakSet()


def watch(session: Session | None, connection: Connection) -> None:
    """Watches a session and a connection, once for as long as they live."""
    if session is not None and session not in _sessions:
        _sessions.add(session)
        event.listen(session, "before_commit", _before_commit)
        event.listen(session, "after_begin", _after_begin)
    if connection not in _connections:
        _connections.add(connection)
        event.listen(connection, "commit", _on_commit)


def _before_commit(session: Session) -> None:
    """Savepoints within an act are the app's own affair."""
    transaction = session.get_nested_transaction()
    root = session.get_transaction()
    if transaction is None or root is None:
        return
    for connection in root.connections:
        for act in _acts(connection):
            if act.opened.savepoint is transaction and not act.ended:
                raise _refused("committed")


def _after_begin(session: Session, transaction: SessionTransaction, connection: Connection) -> None:
    root = session.get_transaction()
    if root is None or not transaction.nested:
        return
    for other in root.connections:
        if other is not connection and any(act.opened.session is session for act in _acts(other)):
            raise UsageError(
                "journal.binds",
                "The session reached another database within an act, whose journal can't be there as well.",
                "Write to one database in an act.",
            )


def _on_commit(connection: Connection) -> None:
    if any(not act.ended for act in _acts(connection)):
        raise _refused("committed")


def _acts(connection: Connection) -> list[Act]:
    if connection.closed or connection.invalidated:
        return []
    found: station.Station | None = connection.info.get(station.KEY)
    return [act for act in found.acts if act.alive] if found is not None else []


def _refused(how: str) -> UsageError:
    return UsageError(
        "journal.ended",
        f"The transaction would be {how} within an act, which would part what it did from its journal.",
        "Commit after the act has ended.",
    )
