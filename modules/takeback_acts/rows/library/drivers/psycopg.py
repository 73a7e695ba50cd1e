"""PostgreSQL through psycopg, sync or async."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg.rows import tuple_row
from psycopg.types.string import TextLoader

from takeback_acts.rows.dialect import Link

T = TypeVar("T")


class PsycopgLink:
    """A cursor of our own on an app's connection: rows come as tuples, whatever the app's are."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._cursor = psycopg.Cursor(connection, row_factory=tuple_row)
        _loaders(self._cursor)

    @property
    def rowcount(self) -> int:
        """Rows that the last statement changed."""
        return max(self._cursor.rowcount, 0)

    def execute(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All the rows a statement gives; of several, which take no parameters, those of the last."""
        cursor = self._cursor
        cursor.execute(sql.encode(), params or None)
        while cursor.nextset():
            pass
        return cursor.fetchall() if cursor.description is not None else []

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        """Runs a statement for each of the rows; how many rows it changed in all."""
        self._cursor.executemany(sql.encode(), rows)
        return self.rowcount


class AsyncPsycopgLink:
    """The same, awaited by the greenlet that SQLAlchemy runs it in."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        from sqlalchemy.util import await_only

        self._await: Callable[[Any], Any] = await_only
        self._cursor = psycopg.AsyncCursor(connection, row_factory=tuple_row)
        _loaders(self._cursor)

    @property
    def rowcount(self) -> int:
        """Rows that the last statement changed."""
        return max(self._cursor.rowcount, 0)

    def execute(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All the rows a statement gives; of several, which take no parameters, those of the last."""
        rows: list[tuple[Any, ...]] = self._await(self._execute(sql, params))
        return rows

    async def _execute(self, sql: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        cursor = self._cursor
        await cursor.execute(sql.encode(), params or None)
        while cursor.nextset():
            pass
        return await cursor.fetchall() if cursor.description is not None else []

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        """Runs a statement for each of the rows; how many rows it changed in all."""
        self._await(self._cursor.executemany(sql.encode(), rows))
        return self.rowcount


class PsycopgDriver:
    """One connection of psycopg's."""

    def __init__(self, connection: Any, *, is_async: bool) -> None:
        self._connection = connection
        self._link = AsyncPsycopgLink(connection) if is_async else PsycopgLink(connection)

    def run(self, fn: Callable[[Link], T]) -> T:
        """Runs a function over the connection."""
        return fn(self._link)

    def autocommits(self) -> bool:
        """Whether each statement is a transaction of its own."""
        return bool(self._connection.autocommit)


def _loaders(cursor: Any) -> None:
    """Texts come as they are, whatever the app loads them into."""
    for name in ("text", "varchar", "name"):
        cursor.adapters.register_loader(name, TextLoader)
