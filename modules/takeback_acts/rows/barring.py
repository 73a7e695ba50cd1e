"""Barring: what the journal of a database says of entries that somebody may still be about to bring.

A server goes on with what it was sent by a process, or over a connection, that is no more: a commit that was
on its way may come true after the journal was asked. So who hears that an entry is not there has first made
sure that it never will be.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from takeback import moments
from takeback_acts.rows import told
from takeback_acts.rows.connections import Connection
from takeback_acts.rows.entries import Stored
from takeback_acts.rows.sessions.session import Session


def settled(connection: Connection, session: Session, ids: Sequence[str]) -> list[Stored]:
    """The entries of these ids; those that are not among them never will be. On the worker's thread.

    Raises TakebackError `rows.busy` while the connection is within a transaction, and what the database says
    when somebody holds what it takes: ask again then.
    """
    if session.in_transaction:
        raise told.busy(connection.name)
    session.refresh()
    ledger = connection.ledger(session)
    found = _look(connection, session, ids)
    missing = [id for id in ids if id not in {each.id for each in found}]
    # The locks of a file end with the process that had them, and what it had not committed is gone.
    if not missing or session.dialect.name == "sqlite":
        return found
    session.begin()
    try:
        barred = ledger.journal.bar(session.link, missing, moments.stamp())
        session.dialect.commit(session.link)
    except BaseException:
        with suppress(Exception):  # boundary: what went wrong before is what must be heard
            session.dialect.rollback(session.link)
        raise
    return found if barred else _look(connection, session, ids)


def _look(connection: Connection, session: Session, ids: Sequence[str]) -> list[Stored]:
    ledger = connection.ledger(session)
    return session.snapshot(lambda link: ledger.entries(link, ids=ids, live=False))
