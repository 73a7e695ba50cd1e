"""Guards: a transaction must not end while an act is open in it, and an act has one database."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from sqlalchemy import event
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.orm import Session, SessionTransaction

from takeback.errors import UsageError
from takeback_acts.rows.library import station
from takeback_acts.rows.library.acts import Act
from takeback_acts.rows.library.station import Station

_sessions: WeakKeyDictionary[Session, list[Act]] = WeakKeyDictionary()
_connections: WeakSet[Connection] = WeakSet()
_dialects: WeakSet[Dialect] = WeakSet()


def watch(act: Act) -> None:
    """Watches what an act was opened on. For SQLite it is the statements of its engine, from now on, by the
    one kind of event that costs next to nothing."""
    session, connection = act.opened.session, act.opened.connection
    if session is not None:
        _sessions[session] = [*(other for other in _sessions.get(session, ()) if other.alive), act]
    elif connection not in _connections:
        _connections.add(connection)
        event.listen(connection, "commit", _on_commit)
    if connection.dialect.name == "sqlite" and connection.dialect not in _dialects:
        _dialects.add(connection.dialect)
        for name in ("do_execute", "do_executemany", "do_execute_no_params"):
            event.listen(connection.engine, name, _on_statement)


@event.listens_for(Session, "before_commit")
def _before_commit(session: Session) -> None:
    """Savepoints within an act are the app's own affair."""
    acts = _sessions.get(session)
    if acts is None:
        return
    transaction = session.get_nested_transaction()
    if any(act.alive and act.opened.savepoint is transaction and not act.ended for act in acts):
        raise _refused()


@event.listens_for(Session, "after_begin")
def _after_begin(session: Session, transaction: SessionTransaction, connection: Connection) -> None:
    for act in _sessions.get(session, ()):
        if act.alive and not act.ended and act.opened.connection is not connection:
            raise UsageError(
                "journal.binds",
                "The session reached another database within an act, whose journal can't be there as well.",
                "Write to one database in an act.",
            )


def _on_commit(connection: Connection) -> None:
    at = _station(connection)
    if at is not None and any(act.alive and not act.ended for act in at.acts):
        raise _refused()


def _on_statement(_: Any, statement: str, *rest: Any) -> None:
    """What a statement may write is captured from before it runs. `rest` ends with its context."""
    context = rest[-1]
    at = _station(context.root_connection) if context is not None else None
    if at is not None and at.acts and at.acts[-1].alive:
        at.before(statement)


def _station(connection: Connection) -> Station | None:
    found: Station | None = connection.info.get(station.KEY)
    return found


def _refused() -> UsageError:
    return UsageError(
        "journal.ended",
        "The transaction would be committed within an act, which would part what it did from its journal.",
        "Commit after the act has ended.",
    )
