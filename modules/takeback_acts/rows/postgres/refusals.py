"""Refusals: what our triggers refuse, and what tells that the schema is not as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from psycopg import Error, errors

from takeback.errors import ConflictError, RefusedError, TakebackError

CHANGED = "TB001"
TRUNCATED = "TB002"
UNJOURNALED = "TB003"

_OURS = "takeback_capture_"
_GONE = (
    errors.UndefinedColumn,
    errors.UndefinedTable,
    errors.UndefinedFunction,
    errors.UndefinedObject,
    errors.DatatypeMismatch,
    errors.InvalidSchemaName,
)
# What a function meets that goes on with a type that is no more.
_STALE = (*_GONE, errors.InternalError_)


def refusal(error: Error) -> TakebackError | None:
    """What a trigger of ours refused a statement for; None when the error is another."""
    table = error.diag.table_name or "a table"
    if error.sqlstate == TRUNCATED:
        return RefusedError(
            "rows.truncate", f"TRUNCATE of {table} can't be taken back.", "Use DELETE, which can."
        )
    if error.sqlstate == UNJOURNALED:
        return RefusedError(
            "rows.unjournaled",
            f"{table} can't be journaled, so nothing may change it unseen.",
            "`rows.tables` tells why. Give it what is missing, or declare it to be outside.",
        )
    if error.sqlstate == CHANGED or (isinstance(error, _STALE) and _OURS in (error.diag.context or "")):
        return changed(table)
    return None


def changed(table: str) -> ConflictError:
    """The schema is not as it was when it was looked at."""
    return ConflictError(
        "rows.changed",
        f"The columns of {table} have changed since the database was looked at.",
        "Try again: it is looked at anew.",
        retryable=True,
    )


@contextmanager
def known(table: str) -> Iterator[None]:
    """Statements of our own, which are right as long as the schema is as we know it."""
    try:
        yield
    except _GONE as error:
        raise changed(table) from error
