"""Numbered scripts that bring a module's tables to the form its code expects."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator

from takeback.errors import TakebackError
from takeback.moments import stamp
from takeback.transactions import Transaction

TABLE = """
CREATE TABLE IF NOT EXISTS kernel_migration (
    module TEXT NOT NULL,
    version INTEGER NOT NULL,
    at TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (module, version)
) STRICT, WITHOUT ROWID
"""


def prepare(tx: Transaction) -> None:
    """Makes the table that notes which scripts have run."""
    tx.execute(TABLE)


def applied(connection: sqlite3.Connection, module: str, scripts: tuple[str, ...]) -> int:
    """How many of the scripts this database has, after checking that they are the same ones.

    Raises `store.future` when it has more than there are, and `store.migration_changed`. Changes nothing.
    """
    rows = connection.execute(
        "SELECT version, digest FROM kernel_migration WHERE module = ? ORDER BY version", (module,)
    ).fetchall()
    if len(rows) > len(scripts):
        raise _future(module, len(rows), len(scripts))
    for (version, digest), script in zip(rows, scripts, strict=False):
        if digest != _digest(script):
            raise _changed(module, version)
    return len(rows)


def apply(tx: Transaction, module: str, version: int, script: str) -> None:
    """Runs one script and notes it, in the open transaction. Raises `store.migration_failed`."""
    try:
        for statement in _statements(script):
            tx.execute(statement)
    except (sqlite3.OperationalError, sqlite3.IntegrityError, sqlite3.ProgrammingError) as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF not in _OF_THE_SCRIPT:
            raise
        raise _failed(module, version) from error
    tx.execute(
        "INSERT INTO kernel_migration (module, version, at, digest) VALUES (?, ?, ?, ?)",
        (module, version, stamp(), _digest(script)),
    )


# What SQLite says about the words or the rows; all else is about the disk and has its own error.
_OF_THE_SCRIPT = {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH}


def _statements(script: str) -> Iterator[str]:
    """The script's statements one by one: `executescript` would commit the transaction around it."""
    statement = ""
    for piece in script.split(";"):
        statement += piece
        if sqlite3.complete_statement(statement + ";"):
            yield statement
            statement = ""
        else:
            statement += ";"
    if statement.strip("; \t\r\n"):
        yield statement


def _digest(script: str) -> str:
    return hashlib.sha256(script.encode()).hexdigest()


def _future(module: str, found: int, known: int) -> TakebackError:
    return TakebackError(
        "store.future",
        f"The database has version {found} of {module}'s tables and this takeback knows {known}.",
        "Use the newer takeback that wrote it. Nothing was changed.",
        data={"module": module, "found": found, "known": known},
    )


def _changed(module: str, version: int) -> TakebackError:
    return TakebackError(
        "store.migration_changed",
        f"Migration {version} of {module} is not the one this database was made with.",
        f"Bring the module's own script {version} back and put the change in a new one. Nothing was changed.",
        data={"module": module, "version": version},
    )


def _failed(module: str, version: int) -> TakebackError:
    return TakebackError(
        "store.migration_failed",
        f"Migration {version} of {module} did not run, and the tables are as they were before it.",
        "Report it to the module's author, with the output of `takeback doctor`.",
        data={"module": module, "version": version},
    )
