"""Failures: what a database's driver says, in takeback's words; its own may quote somebody's values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from takeback.errors import TakebackError
from takeback_acts.rows import told
from takeback_acts.rows.dialect import Dialect

if TYPE_CHECKING:
    import sqlite3

_NAMED = re.compile(r"no such (table|column|told.function): ([^\s\"']{1,200})")


@contextmanager
def reported(database: str, dialect: Dialect) -> Iterator[None]:
    """Turns what the driver raises into a typed error; everything else goes on as it is."""
    try:
        yield
    except TakebackError:
        raise
    except Exception as error:
        if (better := typed(database, dialect, error)) is None:
            raise
        raise better from error


def typed(database: str, dialect: Dialect, error: Exception) -> TakebackError | None:
    """A driver's error in takeback's words; None for what is none of a driver's."""
    if (refusal := getattr(dialect, "refusal", lambda _: None)(error)) is not None:
        return refusal  # type: ignore[no-any-return]
    violation = dialect.violation(error)
    if violation is not None:
        return told.constraint(database, violation)
    if isinstance(error, OverflowError | UnicodeEncodeError):
        return told.unfit("A value is beyond what the database can hold")
    state = getattr(error, "sqlstate", None)
    if isinstance(state, str):
        return _of_postgresql(database, state, error)
    if dialect.name == "sqlite":
        return of_sqlite(database, error)
    if not _is_driver(error, "psycopg"):
        return None
    # Without a state it is the connection that failed, or psycopg that would not even ask.
    is_lost = type(error).__name__ in ("OperationalError", "InterfaceError", "ConnectionTimeout")
    return told.unreachable(database) if is_lost else told.parameters()


# ---------------------------------------------------------------------- SQLite


def of_sqlite(database: str, error: BaseException) -> TakebackError | None:
    """An error of SQLite's in takeback's words."""
    import sqlite3

    if isinstance(error, UnicodeDecodeError):
        return told.damaged(database)
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
        return told.statement("There are two statements in one")
    if "binding" in words.lower():
        return told.parameters()
    return told.unfit("A value is of a type that the database has not")


def _by_words(database: str, words: str) -> TakebackError:
    if found := _NAMED.search(words):
        what, name = found.groups()
        return told.missing(database, what, name)
    if "syntax error" in words or "incomplete input" in words:
        return told.statement("The statement is no SQL that SQLite understands")
    return told.failed(database, "SQLite")


def _sqlite_codes() -> Mapping[int, Callable[[str], TakebackError]]:
    import sqlite3

    return {
        sqlite3.SQLITE_BUSY: told.busy,
        sqlite3.SQLITE_LOCKED: told.busy,
        sqlite3.SQLITE_READONLY: told.readonly,
        sqlite3.SQLITE_PERM: told.readonly,
        sqlite3.SQLITE_AUTH: told.readonly,
        sqlite3.SQLITE_FULL: told.full,
        sqlite3.SQLITE_CORRUPT: told.damaged,
        sqlite3.SQLITE_NOTADB: told.damaged,
        sqlite3.SQLITE_CANTOPEN: told.unreachable,
        sqlite3.SQLITE_IOERR: told.unreachable,
        sqlite3.SQLITE_INTERRUPT: told.ended,
        sqlite3.SQLITE_MISMATCH: lambda _: told.unfit("A value is of a type that the column can't hold"),
        sqlite3.SQLITE_TOOBIG: lambda _: told.unfit("A value is too large"),
    }


# ---------------------------------------------------------------------- PostgreSQL


def _of_postgresql(database: str, state: str, error: Exception) -> TakebackError:
    if made := _STATES.get(state) or _CLASSES.get(state[:2]):
        return made(database)
    diagnosis = getattr(error, "diag", None)
    if state == "42P01":
        return told.missing(database, "table", _name(diagnosis, "table_name") or "of that name")
    if state == "42703":
        return told.missing(database, "column", _name(diagnosis, "column_name") or "of that name")
    if state == "42883":
        return told.function("of that name and those types")
    return told.failed(database, f"PostgreSQL ({state})")


def _name(diagnosis: object, attribute: str) -> str:
    found = getattr(diagnosis, attribute, None)
    return found if isinstance(found, str) else ""


def _is_driver(error: Exception, package: str) -> bool:
    return any(kind.__module__.partition(".")[0] == package for kind in type(error).__mro__)


def _no_statement(database: str) -> TakebackError:
    return told.statement("The statement is no SQL that PostgreSQL understands")


def _no_value(database: str) -> TakebackError:
    return told.unfit("A value is none that its column can take")


_CLASSES: Mapping[str, Callable[[str], TakebackError]] = {
    "08": told.unreachable,
    "22": _no_value,
    "28": told.password,
    "53": told.full,
}
_STATES: Mapping[str, Callable[[str], TakebackError]] = {
    "3D000": told.unreachable,
    "57P01": told.unreachable,
    "57P02": told.unreachable,
    "57P03": told.unreachable,
    "25006": told.readonly,
    "40001": told.busy,
    "40P01": told.busy,
    "55P03": told.busy,
    "08P01": told.parameters,
    "42P02": told.parameters,
    "42P18": told.parameters,
    "42501": told.privilege,
    "42601": _no_statement,
    "42804": _no_value,
    "57014": told.ended,
}
