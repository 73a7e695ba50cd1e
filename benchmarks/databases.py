"""Databases of a person's, as the benchmarks of rows use them: one table of so many rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from takeback_acts.rows.dialect import Dialect, Link
from takeback_acts.rows.postgres.dialect import PostgresDialect
from takeback_acts.rows.postgres.link import open_link as open_postgres
from takeback_acts.rows.sqlite.dialect import SqliteDialect
from takeback_acts.rows.sqlite.link import open_link as open_sqlite
from tests.rows import server

TABLE = """
CREATE TABLE skill (id INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL, level INTEGER NOT NULL)
"""
BODY = "a line as somebody writes it. " * 16
"""What each row holds beside its short columns: about half a kilobyte."""

Run = Callable[[], None]


class Sqlite:
    """A file; `mode` is that of its own journal, "wal" or "delete"."""

    name = "SQLite"

    def __init__(self, path: Path, rows: int, mode: str = "wal") -> None:
        self.url = f"sqlite:///{path}"
        self._path = path
        with closing(sqlite3.connect(path)) as db:
            db.execute(f"PRAGMA journal_mode = {mode}")
            db.execute(TABLE)
            made = ((number, f"skill {number}", BODY) for number in range(rows))
            db.executemany("INSERT INTO skill VALUES (?, ?, ?, 1)", made)
            db.commit()

    @property
    def dialect(self) -> Dialect:
        """One for a connection of its own."""
        return SqliteDialect()

    def link(self) -> Link:
        """A connection as an act has it."""
        link = open_sqlite(self._path)
        link.execute("PRAGMA foreign_keys = ON")
        link.execute("PRAGMA temp_store = MEMORY")
        return link

    def plain(self) -> Any:
        """A connection with the same settings, of the driver's own."""
        db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA foreign_keys = ON")
        return db

    @staticmethod
    def update(db: Any, key: int, title: str) -> None:
        """One update in one transaction, durable."""
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE skill SET title = ? WHERE id = ?", (title, key))
        db.execute("COMMIT")

    @staticmethod
    def updates(db: Any, rows: list[tuple[str, str, int]]) -> None:
        """So many updates in one transaction, durable."""
        db.execute("BEGIN IMMEDIATE")
        db.executemany("UPDATE skill SET title = ?, body = ? WHERE id = ?", rows)
        db.execute("COMMIT")


class Postgres:
    """A database of a server's."""

    name = "PostgreSQL"

    def __init__(self, on: server.Server, rows: int) -> None:
        name = on.fresh()
        self.url = on.url(name)
        self._connect = partial(on.connect, name, role="app")
        with self._connect() as db:
            db.execute(TABLE)
            made = f"SELECT i, 'skill ' || i, '{BODY}', 1 FROM generate_series(0, {rows - 1}) i"
            db.execute(f"INSERT INTO skill {made}")
            db.execute("ANALYZE skill")

    @property
    def dialect(self) -> Dialect:
        """One for a connection of its own."""
        return PostgresDialect()

    def link(self) -> Link:
        """A connection as an act has it."""
        return open_postgres(self.url)

    def plain(self) -> psycopg.Connection:
        """A connection of the driver's own."""
        return self._connect()

    @staticmethod
    def update(db: psycopg.Connection, key: int, title: str) -> None:
        """One update in one transaction, durable."""
        db.execute("BEGIN")
        db.execute("UPDATE skill SET title = %s WHERE id = %s", (title, key))
        db.execute("COMMIT")

    @staticmethod
    def updates(db: psycopg.Connection, rows: list[tuple[str, str, int]]) -> None:
        """So many updates in one transaction, durable."""
        with db.transaction(), db.cursor() as cursor:
            cursor.executemany("UPDATE skill SET title = %s, body = %s WHERE id = %s", rows)


Database = Sqlite | Postgres


@contextmanager
def postgres() -> Iterator[server.Server]:
    """A server of the benchmarks' own."""
    made = server.make()
    try:
        yield made
    finally:
        made.stop()
