"""Opening and closing acts."""

from __future__ import annotations

from contextlib import suppress

from sqlalchemy.engine import Connection
from sqlalchemy.orm import Session

from takeback.errors import RefusedError, TakebackError, UsageError
from takeback_acts.rows.dialect import Link
from takeback_acts.rows.library import failures, guards, station
from takeback_acts.rows.library.acts import Act, Opened
from takeback_acts.rows.library.ledger import AppLedger
from takeback_acts.rows.library.station import Rulebook, Station


def reached(target: Session | Connection) -> tuple[Session | None, Connection, Station]:
    """The connection of a session or of itself, with what is pending flushed and a transaction begun."""
    session = target if isinstance(target, Session) else None
    if session is not None:
        session.flush()
        connection = session.connection()
    else:
        assert isinstance(target, Connection)
        connection = target
        if not connection.in_transaction():
            connection.begin()
    found = station.of(connection)
    found.require_transaction()
    return session, connection, found


def open_act(target: Session | Connection, book: Rulebook, act: Act) -> None:
    """From now on what the session or connection changes is the act's."""
    session, connection, at = reached(target)
    outer = at.acts[-1] if at.acts else None

    def prepared(link: Link) -> AppLedger:
        if outer is not None:
            outer.journal(link, outer.opened.ledger, last=False)
            return outer.opened.ledger
        ledger = at.ledger(link, book, connection.engine.pool)
        ledger.dialect.start(link)
        return ledger

    ledger = at.run(prepared)
    savepoint = connection.begin_nested() if session is None else session.begin_nested()
    try:
        if session is not None:
            session.connection()
        if outer is None:
            at.run(lambda link: ledger.arm(link, act.id))
    except BaseException:
        savepoint.rollback()
        _recover(at, ledger)
        raise
    act.begin(Opened(session, connection, at, ledger, savepoint))
    at.acts.append(act)
    guards.watch(act)


def close_act(act: Act) -> None:
    """Writes the act's entry into the transaction. Raises what makes the act impossible, then nothing of it
    stands."""
    opened = act.opened
    at, ledger = opened.station, opened.ledger
    try:
        _require_open(act)
        if opened.session is not None:
            opened.session.flush()
        at.run(lambda link: act.journal(link, ledger, last=len(at.acts) == 1))
        act.ended = True
        opened.savepoint.commit()
    except BaseException as error:
        reason = told(error, act)
        drop_act(act)
        if reason is error:
            raise
        raise reason from error
    at.acts.remove(act)
    act.end()


def _require_open(act: Act) -> None:
    opened = act.opened
    if not opened.savepoint.is_active:
        raise UsageError(
            "journal.ended",
            "The transaction was committed, rolled back or broken within an act, so it can't be journaled.",
            "Commit after the act has ended, or begin another one.",
        )
    if opened.station.acts[-1] is not act:
        raise UsageError(
            "journal.order", "An act within this one is still open.", "Let the inner act end first."
        )


def drop_act(act: Act) -> None:
    """Rolls back what the act did, and what is still open within it."""
    opened = act.opened
    at = opened.station
    act.ended = True
    try:
        if opened.savepoint.is_active or _is_broken(opened):
            opened.savepoint.rollback()
        elif opened.session is not None and opened.session.in_transaction():
            opened.session.rollback()
        if opened.session is not None:
            opened.session.expire_all()
    finally:
        at.acts = at.acts[: at.acts.index(act)] if act in at.acts else at.acts
        act.forget()
        act.end()
        _recover(at, opened.ledger)


def _is_broken(opened: Opened) -> bool:
    """Whether a flush failed, which leaves the session's own savepoint to be rolled back."""
    session = opened.session
    return session is not None and session.get_nested_transaction() is opened.savepoint


def _recover(at: Station, ledger: AppLedger) -> None:
    """Puts back what no rollback does, unless an act is still open there. A connection that is gone has taken
    it along."""
    if not at.acts:
        with suppress(TakebackError):
            at.run(ledger.dialect.recover)


def told(error: BaseException, act: Act) -> BaseException:
    """What a body raised: as it is, or what a trigger of ours refused. A schema that is not as it was is
    looked at anew the next time."""
    refused = failures.refused(error)
    if refused is None:
        return error
    if refused.code == "rows.changed":
        act.opened.ledger.dialect.forget()
    return refused


def require_none_open(at: Station) -> None:
    """Raises RefusedError `journal.within`."""
    if at.acts:
        raise RefusedError(
            "journal.within",
            "An act is open on this connection, and what it does must not be taken back while it is at it.",
            "Rewind when the act has ended.",
        )
