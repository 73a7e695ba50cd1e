"""Told: what goes wrong with a database, in words that quote nobody's values."""

from __future__ import annotations

from takeback.errors import ConflictError, NotFoundError, RefusedError, TakebackError, UsageError
from takeback_acts.rows.dialect import Violation

_BROKEN = {
    "unique": "is taken already",
    "foreign_key": "has nothing to refer to, or is still referred to",
    "check": "does not meet a check",
    "not_null": "may not be null",
    "exclusion": "excludes what is there",
}


def constraint(database: str, broken: Violation) -> ConflictError:
    """A statement broke a constraint."""
    why = _BROKEN.get(broken.kind, "is refused by the database")
    place = ", ".join(broken.columns)
    where = f"{broken.table}({place})" if place else broken.table
    name = f" [{broken.constraint}]" if broken.constraint else ""
    return ConflictError(
        "rows.constraint",
        f"{where or 'A value'} of database {database} {why}{name:.300}",
        "Nothing was changed. Choose other values, or change what they depend on first.",
        data={
            "kind": broken.kind,
            "constraint": broken.constraint,
            "table": broken.table,
            "columns": list(broken.columns),
        },
    )


def unfit(why: str) -> UsageError:
    """A value is none that the column can take."""
    return UsageError(
        "rows.unfit", f"{why}, so nothing was changed", "`rows.tables` tells the columns' types."
    )


def unreachable(database: str) -> TakebackError:
    """The database does not answer."""
    return TakebackError(
        "rows.unreachable",
        f"Database {database} can't be reached",
        "See that it runs, and that its address still holds; `takeback rows connect` changes that.",
        retryable=True,
    )


def busy(database: str) -> TakebackError:
    """Somebody else holds what a statement needs."""
    return TakebackError(
        "rows.busy",
        f"Another program holds what was to be changed of database {database}",
        "Try again in a moment; nothing was changed.",
        retryable=True,
    )


def lost(database: str) -> TakebackError:
    """A transaction across several steps is not there any more."""
    return TakebackError(
        "rows.lost",
        f"The transaction on database {database} was lost before it was through, and so rolled back",
        "Try again; look at the database's log, and at triggers that roll back.",
        retryable=True,
    )


def parameters(database: str = "") -> UsageError:
    """The marks of a statement and its parameters do not go together."""
    return UsageError(
        "rows.parameters", "The statement has another number of parameters", "Give one for each mark."
    )


def statement(why: str) -> UsageError:
    """A statement can't be understood."""
    return UsageError(
        "rows.statement", why, "Give one INSERT, UPDATE, DELETE or MERGE in the database's own SQL."
    )


def missing(database: str, what: str, name: str) -> TakebackError:
    """What a statement names is not there: a `table`, a `column` or a `function`."""
    if what == "table":
        return NotFoundError(
            "rows.table", f"Database {database} has no table {name}", "`rows.tables` lists them."
        )
    if what == "column":
        return NotFoundError(
            "rows.column", f"There is no column {name} in database {database}", "`rows.tables` lists them."
        )
    return function(name)


def function(name: str) -> RefusedError:
    """A statement calls what it may not, or what is not there."""
    return RefusedError(
        "rows.function",
        f"The function {name:.100} can't be used here",
        "Plain functions of the database can; work the value out yourself and give it as a parameter.",
    )


def failed(database: str, engine: str) -> TakebackError:
    """A statement failed for a reason that there is no better word for."""
    return TakebackError(
        "rows.failed",
        f"{engine} refused the statement on database {database}; nothing was changed",
        "Look at the statement, and at the database's own log.",
    )


def password(database: str) -> RefusedError:
    """The database does not let takeback in."""
    return RefusedError(
        "rows.password",
        f"Database {database} does not accept the user or the password",
        "Give the right ones in the URL: `takeback rows connect NAME URL`.",
    )


def privilege(database: str) -> RefusedError:
    """The database's user may not do it."""
    return RefusedError(
        "rows.privilege",
        f"The user that takeback has at database {database} may not do that",
        "Grant it there, or connect with another user.",
    )


def readonly(database: str) -> RefusedError:
    """Nothing can be written."""
    return RefusedError(
        "rows.readonly",
        f"Database {database} can't be written here",
        "Look at the file's mode, or at the server's state; a query never writes.",
    )


def full(database: str) -> TakebackError:
    """The disk is full."""
    return TakebackError(
        "rows.full",
        f"The disk with database {database} is full; nothing was changed",
        "Make room, then try again.",
        retryable=True,
    )


def damaged(database: str) -> TakebackError:
    """It is no database, or not any more."""
    return TakebackError(
        "rows.damaged",
        f"Database {database} is damaged, or its file is no database",
        "takeback left it as it is. Look at it with its own tools, or restore a backup.",
    )


def ended(database: str) -> TakebackError:
    """A statement was ended before it was through."""
    return TakebackError(
        "rows.deadline",
        f"A statement on database {database} was ended before it was through; nothing was changed",
        "Ask for less at once, or raise [rows] statement_seconds.",
    )


def unrecorded(database: str) -> TakebackError:
    """An undo changed rows, but what would take that back could not be written down."""
    return TakebackError(
        "rows.unrecorded",
        f"What an undo changed in database {database} could not be recorded, so it was left as it was",
        "Try again; the error before this one says what was in the way.",
        retryable=True,
    )
