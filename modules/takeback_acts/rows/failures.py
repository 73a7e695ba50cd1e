"""Failures: what a database's driver says, in takeback's words; its own may quote somebody's values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from takeback.errors import ConflictError, NotFoundError, RefusedError, TakebackError, UsageError
from takeback_acts.rows.dialect import Dialect, Violation

if TYPE_CHECKING:
    import sqlite3

_BROKEN = {
    "unique": "is taken already",
    "foreign_key": "has nothing to refer to, or is still referred to",
    "check": "does not meet a check",
    "not_null": "may not be null",
    "exclusion": "excludes what is there",
}
_NAMED = re.compile(r"no such (table|column|function): ([^\s\"']{1,200})")


@contextmanager
def reported(database: str, dialect: Dialect) -> Iterator[None]:
    """Turns what the driver raises into a typed error; everything else goes on as it is."""
    try:
        yield
    except TakebackError:
        raise
    except Exception as error:
        if (told := typed(database, dialect, error)) is None:
            raise
        raise told from error


def typed(database: str, dialect: Dialect, error: Exception) -> TakebackError | None:
    """A driver's error in takeback's words; None for what is none of a driver's."""
    if (refusal := getattr(dialect, "refusal", lambda _: None)(error)) is not None:
        return refusal  # type: ignore[no-any-return]
    violation = dialect.violation(error)
    if violation is not None:
        return constraint(database, violation)
    if isinstance(error, OverflowError | UnicodeEncodeError):
        return unfit("A value is beyond what the database can hold")
    state = getattr(error, "sqlstate", None)
    if isinstance(state, str):
        return _of_postgresql(database, state, error)
    if dialect.name == "sqlite":
        return of_sqlite(database, error)
    if not _is_driver(error, "psycopg"):
        return None
    # Without a state it is the connection that failed, or psycopg that would not even ask.
    lost = type(error).__name__ in ("OperationalError", "InterfaceError", "ConnectionTimeout")
    return unreachable(database) if lost else parameters()


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


# ---------------------------------------------------------------------- SQLite


def of_sqlite(database: str, error: BaseException) -> TakebackError | None:
    """An error of SQLite's in takeback's words."""
    import sqlite3

    if isinstance(error, UnicodeDecodeError):
        return _damaged(database)
    if not isinstance(error, sqlite3.Error):
        return None
    code = getattr(error, "sqlite_errorcode", None)
    if not isinstance(code, int):
        return _of_python(error)
    made = _sqlite_codes().get(code & 0xFF)
    return made(database) if made is not None else _by_words(database, str(error))


def _of_python(error: sqlite3.Error) -> TakebackError:
    """What Python's own part of the driver found before SQLite saw it."""
    words = str(error)
    if "one statement" in words:
        return statement("There are two statements in one")
    if "binding" in words.lower():
        return parameters()
    return unfit("A value is of a type that the database has not")


def _by_words(database: str, words: str) -> TakebackError:
    if found := _NAMED.search(words):
        what, name = found.groups()
        return _missing(database, what, name)
    if "syntax error" in words or "incomplete input" in words:
        return statement("The statement is no SQL that SQLite understands")
    return failed(database, "SQLite")


def _missing(database: str, what: str, name: str) -> TakebackError:
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


def _sqlite_codes() -> Mapping[int, Callable[[str], TakebackError]]:
    import sqlite3

    return {
        sqlite3.SQLITE_BUSY: busy,
        sqlite3.SQLITE_LOCKED: busy,
        sqlite3.SQLITE_READONLY: _readonly,
        sqlite3.SQLITE_PERM: _readonly,
        sqlite3.SQLITE_AUTH: _readonly,
        sqlite3.SQLITE_FULL: _full,
        sqlite3.SQLITE_CORRUPT: _damaged,
        sqlite3.SQLITE_NOTADB: _damaged,
        sqlite3.SQLITE_CANTOPEN: unreachable,
        sqlite3.SQLITE_IOERR: unreachable,
        sqlite3.SQLITE_INTERRUPT: _ended,
        sqlite3.SQLITE_MISMATCH: lambda _: unfit("A value is of a type that the column can't hold"),
        sqlite3.SQLITE_TOOBIG: lambda _: unfit("A value is too large"),
    }


# ---------------------------------------------------------------------- PostgreSQL


def _of_postgresql(database: str, state: str, error: Exception) -> TakebackError:
    if made := _STATES.get(state) or _CLASSES.get(state[:2]):
        return made(database)
    diagnosis = getattr(error, "diag", None)
    if state == "42P01":
        return _missing(database, "table", _name(diagnosis, "table_name") or "of that name")
    if state == "42703":
        return _missing(database, "column", _name(diagnosis, "column_name") or "of that name")
    if state == "42883":
        return function("of that name and those types")
    return failed(database, f"PostgreSQL ({state})")


def _name(diagnosis: object, attribute: str) -> str:
    found = getattr(diagnosis, attribute, None)
    return found if isinstance(found, str) else ""


def _is_driver(error: Exception, package: str) -> bool:
    return any(kind.__module__.partition(".")[0] == package for kind in type(error).__mro__)


def password(database: str) -> RefusedError:
    """The database does not let takeback in."""
    return RefusedError(
        "rows.password",
        f"Database {database} does not accept the user or the password",
        "Give the right ones in the URL: `takeback rows connect NAME URL`.",
    )


def _privilege(database: str) -> RefusedError:
    return RefusedError(
        "rows.privilege",
        f"The user that takeback has at database {database} may not do that",
        "Grant it there, or connect with another user.",
    )


def _readonly(database: str) -> RefusedError:
    return RefusedError(
        "rows.readonly",
        f"Database {database} can't be written here",
        "Look at the file's mode, or at the server's state; a query never writes.",
    )


def _full(database: str) -> TakebackError:
    return TakebackError(
        "rows.full",
        f"The disk with database {database} is full; nothing was changed",
        "Make room, then try again.",
        retryable=True,
    )


def _damaged(database: str) -> TakebackError:
    return TakebackError(
        "rows.damaged",
        f"Database {database} is damaged, or its file is no database",
        "takeback left it as it is. Look at it with its own tools, or restore a backup.",
    )


def _ended(database: str) -> TakebackError:
    return TakebackError(
        "rows.deadline",
        f"A statement on database {database} was ended before it was through; nothing was changed",
        "Ask for less at once, or raise [rows] statement_seconds.",
    )


def _no_statement(database: str) -> TakebackError:
    return statement("The statement is no SQL that PostgreSQL understands")


def _no_value(database: str) -> TakebackError:
    return unfit("A value is none that its column can take")


_CLASSES: Mapping[str, Callable[[str], TakebackError]] = {
    "08": unreachable,
    "22": _no_value,
    "28": password,
    "53": _full,
}
_STATES: Mapping[str, Callable[[str], TakebackError]] = {
    "3D000": unreachable,
    "57P01": unreachable,
    "57P02": unreachable,
    "57P03": unreachable,
    "25006": _readonly,
    "40001": busy,
    "40P01": busy,
    "55P03": busy,
    "08P01": parameters,
    "42P02": parameters,
    "42P18": parameters,
    "42501": _privilege,
    "42601": _no_statement,
    "42804": _no_value,
    "57014": _ended,
}
