"""Guards: a transaction must not end while an act is open in it, and an act has one database."""

from __future__ import annotations

from weakref import WeakKeyDictionary, WeakSet

from sqlalchemy import event
from sqlalchemy.engine import Connection
from sqlalchemy.orm import Session, SessionTransaction

from takeback.errors import UsageError
from takeback_acts.rows.library import station
from takeback_acts.rows.library.acts import Act
from takeback_acts.rows.library.station import Station

_sessions: WeakKeyDictionary[Session, list[Act]] = WeakKeyDictionary()
_connections: WeakSet[Connection] = WeakSet()


def watch(act: Act) -> None:
    """Watches the session and the connection of an act that has been opened."""
    session, connection = act.opened.session, act.opened.connection
    if session is not None:
        _watch_session(session)
        _sessions[session] = [*(other for other in _sessions[session] if other.alive), act]
    if connection not in _connections:
        _connections.add(connection)
        event.listen(connection, "commit", _on_commit)
        if connection.dialect.name == "sqlite":
            event.listen(connection, "before_cursor_execute", _before_statement)
            event.listen(connection, "after_cursor_execute", _after_statement)


def _watch_session(session: Session) -> None:
    if session not in _sessions:
        _sessions[session] = []
        event.listen(session, "before_commit", _before_commit)
        event.listen(session, "after_begin", _after_begin)


def _before_commit(session: Session) -> None:
    """Savepoints within an act are the app's own affair."""
    transaction = session.get_nested_transaction()
    acts = _sessions.get(session, ())
    if any(act.alive and act.opened.savepoint is transaction and not act.ended for act in acts):
        raise _refused("committed")


def _after_begin(session: Session, transaction: SessionTransaction, connection: Connection) -> None:
    for act in _sessions.get(session, ()):
        if act.alive and not act.ended and act.opened.connection is not connection:
            raise UsageError(
                "journal.binds",
                "The session reached another database within an act, whose journal can't be there as well.",
                "Write to one database in an act.",
            )


def _on_commit(connection: Connection) -> None:
    if any(not act.ended for act in _acts(connection)):
        raise _refused("committed")


def _before_statement(connection: Connection, _: object, statement: str, *rest: object) -> None:
    at: Station | None = connection.info.get(station.KEY)
    if at is not None and at.acts:
        at.before(statement)


def _after_statement(connection: Connection, _: object, statement: str, *rest: object) -> None:
    at: Station | None = connection.info.get(station.KEY)
    if at is not None and at.acts:
        at.after(statement)


def _acts(connection: Connection) -> list[Act]:
    if connection.closed or connection.invalidated:
        return []
    found: Station | None = connection.info.get(station.KEY)
    return [act for act in found.acts if act.alive] if found is not None else []


def _refused(how: str) -> UsageError:
    return UsageError(
        "journal.ended",
        f"The transaction would be {how} within an act, which would part what it did from its journal.",
        "Commit after the act has ended.",
    )
