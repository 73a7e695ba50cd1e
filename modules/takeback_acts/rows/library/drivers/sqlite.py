"""SQLite through sqlite3, or through aiosqlite, on the thread that has the connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar

from takeback_acts.rows.dialect import Link
from takeback_acts.rows.sqlite.link import SqliteLink

T = TypeVar("T")


class BorrowedLink(SqliteLink):
    """An app's connection. Its settings are the app's, so nothing of them is touched to make a link."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._cursor = connection.cursor()
        self._cursor.row_factory = None


class SqliteDriver:
    """One connection of sqlite3's. What `run` is given runs in one go, also when it is many statements."""

    def __init__(self, connection: Any, *, is_async: bool) -> None:
        self._async = connection if is_async else None
        self._connection: sqlite3.Connection = connection._conn if is_async else connection
        self._link: BorrowedLink | None = None

    def run(self, fn: Callable[[Link], T]) -> T:
        """Texts come as `str` meanwhile, whatever the app has them come as."""
        if self._async is None:
            return self._run(fn)
        from sqlalchemy.util import await_only

        made: T = await_only(self._async._execute(self._run, fn))
        return made

    def _run(self, fn: Callable[[Link], T]) -> T:
        if self._link is None:
            self._link = BorrowedLink(self._connection)
        texts, self._connection.text_factory = self._connection.text_factory, str
        try:
            return fn(self._link)
        finally:
            self._connection.text_factory = texts

    def autocommits(self) -> bool:
        """An app that begins its transactions itself has done so by now."""
        return self._connection.isolation_level is None and not self._connection.in_transaction
