"""A look at the database that changes nothing, for when no daemon has it open."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from takeback import migrations, outbox, trust
from takeback.errors import TakebackError
from takeback.module import Module
from takeback.sqlite import typed
from takeback_doors.cli.findings import Finding

_MAGIC = b"SQLite format 3\x00"
_HINT = "Stop whatever uses it and copy the data folder before anything else."
_Scripts = tuple[str, ...]


def database_finding(path: Path, modules: Mapping[str, type[Module]]) -> Finding:
    """Whether the file is a sound database, and of no later version than these modules know."""
    try:
        with open(path, "rb") as file:
            head = file.read(len(_MAGIC))
    except FileNotFoundError:
        return Finding("database", True, f"{path} is not there yet")
    except OSError as error:
        return Finding("database", False, f"{path} can't be read: {error.strerror}", _HINT)
    if head and head != _MAGIC:
        return Finding("database", False, f"{path} is no database", _HINT)
    try:
        wrong = list(_wrong(path, modules)) if head else []
    except sqlite3.Error as error:
        found = typed(error)
        wrong = [found.message if isinstance(found, TakebackError) else str(found)]
    return Finding("database", not wrong, "; ".join(wrong[:3]) or "sound", _HINT if wrong else "")


def _wrong(path: Path, modules: Mapping[str, type[Module]]) -> Iterator[str]:
    # Without a log of writes beside it nobody is writing, and SQLite may as well leave no trace.
    log = path.with_name(f"{path.name}-wal")
    how = "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)) as database:
        rows = [str(row[0]) for row in database.execute("PRAGMA quick_check(3)")]
        yield from (row for row in rows if row != "ok")
        if database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'kernel_migration'").fetchone():
            yield from _strange_versions(database, _known(modules))


def _strange_versions(database: sqlite3.Connection, known: Iterable[tuple[str, _Scripts]]) -> Iterator[str]:
    for module, scripts in known:
        try:
            migrations.applied(database, module, scripts)
        except TakebackError as error:
            yield error.message


def _known(modules: Mapping[str, type[Module]]) -> Iterator[tuple[str, _Scripts]]:
    yield "kernel", (outbox.TABLE,)
    yield "kernel.modules", trust.MIGRATIONS
    yield from ((name, made.migrations) for name, made in modules.items())
