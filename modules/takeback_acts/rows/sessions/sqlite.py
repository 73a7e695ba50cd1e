"""A SQLite file that is open: who may write to it, and what a statement would do before it does it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from takeback.errors import RefusedError
from takeback_acts.rows import failures, told
from takeback_acts.rows.dialect import Link
from takeback_acts.rows.sessions.foreseeing import READING, Foreseen
from takeback_acts.rows.sessions.session import Allowed
from takeback_acts.rows.sqlite.dialect import SqliteDialect
from takeback_acts.rows.sqlite.link import SqliteLink, open_link
from takeback_acts.rows.statements import Statement
from takeback_acts.rows.tables import Catalog

T = TypeVar("T")

_MOST_FORESEEN = 256


def open_session(name: str, path: str, wait: float, outside: frozenset[str] = frozenset()) -> SqliteSession:
    """Opens a file that is there; raises TakebackError in the words of `failures`."""
    try:
        return SqliteSession(name, path, wait, outside)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise failures.of_sqlite(name, error) or told.unreachable(name) from error


class SqliteSession:
    """One file, by a connection that writes and by one that is opened read-only when a query needs it."""

    def __init__(self, name: str, path: str, wait: float, outside: frozenset[str]) -> None:
        self.name = name
        self._path = path
        self._wait = wait
        self._outside = outside
        self.dialect = SqliteDialect()
        self.link: SqliteLink = open_link(path, timeout=wait)
        self._reader: SqliteLink | None = None
        self._foreseen = lru_cache(_MOST_FORESEEN)(self._foresee)
        self._named: dict[str, str] = {}
        self._beginning = False
        try:
            self.link.execute("PRAGMA foreign_keys = ON")
            self.link.execute("PRAGMA temp_store = MEMORY")  # a person's rows don't belong in a shared folder
            self.catalog = self.dialect.catalog(self.link)
        except BaseException:
            self.link.close()
            raise

    @property
    def usable(self) -> bool:
        """A file does not go away from who has it open."""
        return True

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open; a trigger may have rolled it back."""
        return self.link.connection.in_transaction

    @property
    def reader(self) -> Link:
        """A connection that is read-only three times over: by its mode, by a pragma, and by an authorizer."""
        if self._reader is None:
            self._reader = _read_only(self._path, self._wait)
        return self._reader

    def refresh(self) -> Catalog:
        """The catalog as it is now; while a transaction writes, as it was when that began."""
        if self.link.connection.in_transaction and not self._beginning:
            return self.catalog
        found = self.dialect.refresh(self.link, self.catalog)
        if found is not self.catalog:
            self.catalog = found
            self._foreseen.cache_clear()
            self._named.clear()
        return self.catalog

    def snapshot(self, fn: Callable[[Link], T]) -> T:
        """What `fn` finds when all that it reads is of one moment."""
        reader = self.reader
        reader.execute("BEGIN")
        try:
            return fn(reader)
        finally:
            reader.execute("ROLLBACK")

    def begin(self) -> None:
        """Opens a transaction that writes; the catalog is true to its end."""
        self.dialect.begin(self.link)
        self._beginning = True
        try:
            self.refresh()
        except BaseException:
            self.dialect.rollback(self.link)
            raise
        finally:
            self._beginning = False

    def run(self, statement: Statement, sql: str, values: Sequence[Any], allowed: Allowed) -> None:
        """Runs a statement as it was given, once SQLite itself has said what it would do."""
        found = self._foresee(sql, len(values))
        allowed.reads(sorted(found.read), beside=self._referring(found.written))
        allowed.calls(sorted(found.called))
        self.link.execute(sql, values)

    def foresee(self, sql: str, values: Sequence[Any]) -> None:
        """Raises RefusedError `rows.unjournaled` where a trigger or a cascade could change what has none."""
        self._foreseen(sql, len(values))

    def require_fit(self) -> None:
        """Nothing to ask: a file has no users."""

    def missing(self) -> str:
        """Whether the journal's table is there."""
        sql = "SELECT count(*) FROM main.sqlite_schema WHERE name = 'takeback_journal'"
        return "" if self.link.execute(sql)[0][0] else "the journal is gone"

    def require_captured(self) -> None:
        """Nothing to do: what can't be captured was foreseen."""

    def interrupt(self) -> None:
        """Ends the statement that runs."""
        self.link.connection.interrupt()
        if (reader := self._reader) is not None:
            reader.connection.interrupt()

    def close(self) -> None:
        """Closes both connections."""
        if self._reader is not None:
            self._reader.close()
        self.link.close()

    # ------------------------------------------------------------------ foreseeing

    def _foresee(self, sql: str, parameters: int) -> Foreseen:
        """What SQLite asks leave for when it compiles a statement; nothing of it is run."""
        found = Foreseen(self._kinds())
        connection = self.link.connection
        connection.set_authorizer(found.ask)
        try:
            self.link.execute(f"EXPLAIN {sql}", [None] * parameters)
        except sqlite3.DatabaseError:
            if found.forbidden:
                raise _forbidden(found.forbidden) from None
            raise
        finally:
            connection.set_authorizer(None)
        for table in sorted(found.written - self._outside - self.catalog.tables.keys()):
            raise self._not_captured(table)
        return found

    def _not_captured(self, table: str) -> RefusedError:
        why = self.catalog.refused.get(table, "it is none that takeback knows")
        return RefusedError(
            "rows.unjournaled",
            f"The statement could also change {table:.200}, which can't be taken back: {why}",
            "If a trigger keeps it, declare it in [rows] outside; else give it what it lacks.",
        )

    def _kinds(self) -> dict[str, str]:
        """What the names of the schema are: `trigger`, `view`, `virtual`, `shadow` or `table`."""
        if not self._named:
            self._named = dict(
                self.link.execute("SELECT name, type FROM pragma_table_list WHERE schema = 'main'")
            )
            triggers = self.link.execute("SELECT name FROM main.sqlite_schema WHERE type = 'trigger'")
            self._named |= {name: "trigger" for (name,) in triggers if name not in self._named}
        return self._named

    def _referring(self, tables: set[str]) -> list[str]:
        """The tables with references to these."""
        found = self.catalog.tables.values()
        return [one.name for one in found if any(key.to in tables for key in one.foreign_keys)]


def _forbidden(why: str) -> RefusedError:
    return RefusedError(
        "rows.statement_refused",
        f"The statement is refused: {why}",
        "Give one INSERT, UPDATE, DELETE or MERGE on tables of the database.",
    )


def _read_only(path: str, wait: float) -> SqliteLink:
    from pathlib import Path

    uri = Path(path).as_uri() + "?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=wait, check_same_thread=False)
    link = SqliteLink(connection)
    link.execute("PRAGMA query_only = ON")
    link.execute("PRAGMA temp_store = MEMORY")
    connection.set_authorizer(_only_reading)
    return link


def _only_reading(
    action: int, one: str | None, two: str | None, schema: str | None, source: str | None
) -> int:
    if action in READING or action == sqlite3.SQLITE_TRANSACTION:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY
