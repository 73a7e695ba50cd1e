"""Failures: what a driver says of our own statements, in words that have no value of anybody's."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from takeback.errors import ConflictError, NotFoundError, TakebackError
from takeback_acts.rows.library.plans import Plan

_BUSY = frozenset({"40001", "40P01", "55P03"})


class JournalConflict(ConflictError):  # noqa: N818
    """Something stands against taking it back, so nothing was done; `plan` says what, row by row."""

    def __init__(self, plan: Plan) -> None:
        told = _conflicts(plan)
        super().__init__(told.code, told.message, told.hint, data=told.data)
        self.plan = plan


def _conflicts(plan: Plan) -> ConflictError:
    count = len(plan.conflicts)
    return ConflictError(
        "journal.conflict",
        f"Nothing was taken back: {count} {'thing stands' if count == 1 else 'things stand'} against it.",
        "Look at `plan.conflicts`; skip_conflicts=True leaves them, force=True overwrites what it can.",
        data={"conflicts": [conflict.place() for conflict in plan.conflicts]},
    )


@contextmanager
def told(engine: str) -> Iterator[None]:
    """Turns what a driver raises into a typed error; everything else goes on as it is."""
    try:
        yield
    except TakebackError:
        raise
    except Exception as error:
        made = _typed(engine, error)
        if made is None:
            raise
        raise made from error


def _typed(engine: str, error: Exception) -> TakebackError | None:
    state = getattr(error, "sqlstate", None)
    if isinstance(error, sqlite3.Error):
        return _of_sqlite(error)
    if isinstance(state, str):
        return _of_postgresql(state)
    if type(error).__module__.partition(".")[0] in ("psycopg", "asyncpg"):
        return _failed(engine, "the connection was lost")
    return None


def _of_sqlite(error: sqlite3.Error) -> TakebackError:
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return busy()
    if "no such table" in str(error) and "takeback_journal" in str(error):
        return missing()
    return _failed("sqlite", name or type(error).__name__)


def _of_postgresql(state: str) -> TakebackError:
    if state in _BUSY:
        return busy()
    return missing() if state == "42P01" else _failed("postgresql", state)


def busy() -> ConflictError:
    """Somebody else holds what is needed."""
    return ConflictError(
        "journal.busy",
        "Another transaction holds what the journal needs.",
        "Roll back, and try the whole transaction again.",
        retryable=True,
    )


def missing() -> NotFoundError:
    """There is no journal in the database."""
    return NotFoundError(
        "journal.missing",
        "The database has no journal.",
        "Call `install` once, at start or in a migration.",
    )


def schema_changed() -> ConflictError:
    """Somebody made or changed tables while an act was open."""
    return ConflictError(
        "journal.schema",
        "The schema changed within an act, so the journal may not have seen all of it.",
        "Make and change tables outside of acts, and try again.",
        retryable=True,
    )


def _failed(engine: str, why: str) -> TakebackError:
    return TakebackError(
        "journal.database",
        f"{engine} refused a statement of the journal: {why}.",
        "Roll back. The driver's own error is the cause of this one.",
    )


def refused(error: BaseException) -> TakebackError | None:
    """What a trigger of ours refused in a statement of the app's, by SQLAlchemy's error; None for others."""
    original = getattr(error, "orig", None)
    if getattr(original, "sqlstate", None) is None:
        return None
    import psycopg

    from takeback_acts.rows.postgres.refusals import refusal

    if isinstance(original, psycopg.Error):
        return refusal(original)
    cause = getattr(original, "__cause__", None)
    if type(cause).__module__.partition(".")[0] != "asyncpg":
        return None
    from takeback_acts.rows.library.drivers.asyncpg import as_psycopg

    return refusal(as_psycopg(cause))
