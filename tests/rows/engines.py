"""Engines: a database for tests, with a ledger over it and a stranger's connection beside it."""

from __future__ import annotations

import re
import sqlite3
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from takeback_acts.rows.effects import Effect
from takeback_acts.rows.entries import Entry
from takeback_acts.rows.journal import Ledger, Taken
from takeback_acts.rows.postgres.dialect import PostgresDialect
from takeback_acts.rows.postgres.link import open_link as open_postgres
from takeback_acts.rows.rules import Rules
from takeback_acts.rows.sqlite.dialect import SqliteDialect
from takeback_acts.rows.sqlite.link import open_link
from tests.rows.server import Server


class Engine(Protocol):
    """What a test asks of a database.

    Statements are SQL that both engines take, or the engine's own by `name`.
    """

    name: str
    rules: Rules

    def schema(self, *statements: str) -> None:
        """Runs statements by the stranger's hand, and commits."""

    def stranger(self, sql: str, params: Any = ()) -> list[tuple[Any, ...]]:
        """One statement by the stranger's hand, committed."""

    def act(self, *statements: Any) -> str:
        """One journaled act; its id. A statement is SQL or (SQL, parameters)."""

    def take_back(self, *ids: str, **how: Any) -> Taken:
        """Takes acts back and commits, or rolls back when something stands against it."""

    def preview(self, *ids: str, **how: Any) -> Taken:
        """What taking back would come to."""

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """All rows of the person's tables with the type of each value, sorted."""

    def close(self) -> None:
        """Closes what is open."""


class Common:
    """What is the same whichever database it is."""

    name = ""

    def __init__(self, dialect: Any, link: Any) -> None:
        self.dialect, self.link = dialect, link
        self.rules = Rules()
        self.undone: list[str] = []
        self._ids = count(1)
        self._ledger: Ledger | None = None

    @property
    def ledger(self) -> Ledger:
        if self._ledger is None or self._ledger.rules is not self.rules:
            self.dialect.begin(self.link)
            catalog = self.dialect.catalog(self.link)
            self.dialect.install(self.link, catalog)
            self.dialect.commit(self.link)
            self._ledger = Ledger(self.dialect, catalog, self.rules)
        return self._ledger

    def new_id(self) -> str:
        return f"id-{next(self._ids):04}"

    def _transaction(self, do: Any) -> Any:
        self.dialect.begin(self.link)
        try:
            made = do()
        except BaseException:
            self.dialect.rollback(self.link)
            raise
        self.dialect.commit(self.link)
        return made

    def act(self, *statements: Any, grp: str = "juno") -> str:
        def body(link: Any) -> None:
            for each in statements:
                sql, params = (each, ()) if isinstance(each, str) else each
                link.execute(sql, params)

        return self.act_of(body, grp=grp)

    def act_of(self, body: Any, grp: str = "juno") -> str:
        """One journaled act that does whatever the body does; its id."""
        ledger, id = self.ledger, self.new_id()
        entry = Entry(id, f"2026-11-30T09:00:{int(id[3:]) % 60:02}.000Z", grp, "", "rows.execute")
        self.written = self._transaction(lambda: ledger.write(self.link, entry, body))
        return id

    def take_back(self, *ids: str, **how: Any) -> Taken:
        ledger, id = self.ledger, self.new_id()
        self.undone.append(id)
        self.dialect.begin(self.link)
        try:
            stored = ledger.entries(self.link, ids=ids)
            taken = ledger.take_back(self.link, stored, id=id, at="2026-11-30T10:00:00.000Z", **how)
        except BaseException:
            self.dialect.rollback(self.link)
            raise
        if taken.clean:
            self.dialect.commit(self.link)
        else:
            self.dialect.rollback(self.link)
        return taken

    def preview(self, *ids: str, **how: Any) -> Taken:
        ledger = self.ledger
        self.dialect.begin(self.link)
        try:
            return ledger.preview(self.link, ledger.entries(self.link, ids=ids), **how)
        finally:
            self.dialect.rollback(self.link)

    def entries(self, *ids: str) -> list[Any]:
        """What the journal has of these ids."""
        ledger = self.ledger
        self.dialect.begin(self.link)
        try:
            return ledger.entries(self.link, ids=ids)
        finally:
            self.dialect.rollback(self.link)

    def values(self, *values: Any) -> tuple[Any, ...]:
        """Values as images hold them: PostgreSQL's are text."""
        return values if self.name == "sqlite" else tuple(None if v is None else str(v) for v in values)

    key = values

    def conflicts(self, taken: Taken) -> list[Effect]:
        assert not taken.clean
        assert taken.changes == []
        return [effect for effect in taken.effects if effect.action in ("conflict", "gone")]


class SqliteEngine(Common):
    """A file, our connection with the journal, and the stranger's."""

    name = "sqlite"
    errors = sqlite3.Error

    def __init__(self, folder: Path) -> None:
        self.path = folder / "person.db"
        self._stranger = sqlite3.connect(self.path, isolation_level=None)
        self._stranger.execute("PRAGMA journal_mode = WAL")
        self._stranger.execute("PRAGMA foreign_keys = ON")
        self._stranger.execute("PRAGMA synchronous = OFF")
        super().__init__(SqliteDialect(), open_link(self.path))
        self.link.execute("PRAGMA synchronous = OFF")

    def schema(self, *statements: str) -> None:
        for statement in statements:
            self._stranger.execute(statement)

    def stranger(self, sql: str, params: Any = ()) -> list[tuple[Any, ...]]:
        return self._stranger.execute(sql, params).fetchall()

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        names = self.stranger(
            "SELECT name FROM sqlite_schema WHERE type = 'table'"
            " AND name NOT GLOB 'takeback_*' AND name NOT GLOB 'sqlite_*' ORDER BY name"
        )
        return {name: self._rows(name) for (name,) in names}

    def _rows(self, name: str) -> list[tuple[Any, ...]]:
        columns = [row[1] for row in self.stranger(f'PRAGMA table_xinfo("{name}")')]
        told = ", ".join(f'typeof("{c}") || \':\' || quote("{c}")' for c in columns)
        return sorted(self.stranger(f'SELECT {told} FROM "{name}"'))

    def close(self) -> None:
        self.link.close()
        self._stranger.close()


class PostgresEngine(Common):
    """A database of the tests' own server, our connection as the owner of its tables, and the stranger's."""

    name = "postgresql"

    def __init__(self, server: Server) -> None:
        self.server = server
        self.database = server.fresh()
        self.url = server.url(self.database)
        self._stranger = server.connect(self.database, role="app")
        self._stranger.execute("SET synchronous_commit = off")
        super().__init__(PostgresDialect(), open_postgres(self.url))
        self.link.execute("SET synchronous_commit = off")

    def schema(self, *statements: str) -> None:
        for statement in statements:
            self._stranger.execute(_postgres(statement).encode())

    def stranger(self, sql: str, params: Any = ()) -> list[tuple[Any, ...]]:
        cursor = self._stranger.execute(_postgres(sql, params).encode(), params or None)
        return cursor.fetchall() if cursor.description is not None else []

    def act(self, *statements: Any, grp: str = "juno") -> str:
        given = ((each, ()) if isinstance(each, str) else each for each in statements)
        return super().act(*((_postgres(sql, params), params) for sql, params in given), grp=grp)

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        names = self.stranger(
            "SELECT c.oid::regclass::text, c.relname FROM pg_class c"
            " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p')"
            " AND NOT c.relispartition AND n.nspname NOT LIKE 'pg\\_%'"
            " AND n.nspname <> 'information_schema' AND c.relname NOT LIKE 'takeback\\_%' ORDER BY 1"
        )
        return {name: self._rows(sql) for sql, name in names}

    def _rows(self, table: str) -> list[tuple[Any, ...]]:
        return sorted(self.stranger(f"SELECT t::text FROM {table} t"))

    def close(self) -> None:
        self.link.close()
        self._stranger.close()
        self.server.drop(self.database)


def _postgres(sql: str, params: Any = ()) -> str:
    """The few words of SQLite's that PostgreSQL has others for."""
    sql = re.sub(r"\bBLOB\b", "bytea", sql)
    return sql.replace("?", "%s") if params else sql
