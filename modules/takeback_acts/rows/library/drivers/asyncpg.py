"""PostgreSQL through asyncpg, which wants each parameter in the type that the server takes it for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped]
import psycopg
from sqlalchemy.util import await_only

from takeback_acts.rows.dialect import Link

T = TypeVar("T")

_CHANGES = re.compile(r"\s*(INSERT|UPDATE|DELETE)\b")
_TEXT = re.compile(r"'[^']*'")
_NUMBER = re.compile(r"(\d+)$")


class AsyncpgLink:
    """An app's connection, with the marks of parameters numbered and their types said."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._rowcount = 0

    @property
    def rowcount(self) -> int:
        """Rows that the last statement changed."""
        return self._rowcount

    def execute(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All the rows a statement gives; several, which take no parameters, give none."""
        rows: list[tuple[Any, ...]] = await_only(self._execute(sql, params))
        return rows

    async def _execute(self, sql: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        try:
            if params:
                sql = _numbered(sql, tuple(map(type, params)))
            if _tells_count(sql, alone=not params):
                told = await self._connection.execute(sql, *params)
                number = _NUMBER.search(told)
                self._rowcount = int(number[1]) if number else 0
                return []
            return [tuple(row) for row in await self._connection.fetch(sql, *params)]
        except asyncpg.PostgresError as error:
            raise as_psycopg(error) from error

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        """Runs a statement for each of the rows; how many rows it changed in all."""
        count = 0
        for row in rows:
            self.execute(sql, row)
            count += self._rowcount
        self._rowcount = count
        return count


class AsyncpgDriver:
    """One connection of asyncpg's, and SQLAlchemy's adapter that knows whether it is in a transaction."""

    def __init__(self, adapter: Any, connection: Any) -> None:
        self._adapter = adapter
        self._link = AsyncpgLink(connection)

    def run(self, fn: Callable[[Link], T]) -> T:
        """Runs a function over the connection, in the transaction that SQLAlchemy means to be in."""
        if self._adapter._transaction is None:
            await_only(self._adapter._start_transaction())
        return fn(self._link)

    def autocommits(self) -> bool:
        """Whether each statement is a transaction of its own."""
        return bool(self._adapter.autocommit)


@lru_cache(512)
def _tells_count(sql: str, *, alone: bool) -> bool:
    """Whether it is a change, or several statements in one, of which asyncpg tells how they ended."""
    return bool(_CHANGES.match(sql)) or (alone and ";" in _TEXT.sub("", sql))


@lru_cache(512)
def _numbered(sql: str, kinds: tuple[type, ...]) -> str:
    """`%s` becomes `$1` and so on, of the type that the Python value goes to the server as."""
    parts = sql.split("%s")
    marks = (f"${place}{_type(kind)}" for place, kind in enumerate(kinds, 1))
    return parts[0] + "".join(mark + part for mark, part in zip(marks, parts[1:], strict=True))


def _type(kind: type) -> str:
    return "::pg_catalog.int8" if issubclass(kind, int) else "::pg_catalog.text"


def as_psycopg(error: asyncpg.PostgresError) -> psycopg.Error:
    """The same error as psycopg has it, whose words the engine knows."""
    made: psycopg.Error = _class(error.sqlstate)(str(error))
    names = ("schema_name", "table_name", "column_name", "constraint_name", "context")
    vars(made)["told"] = SimpleNamespace(**{name: getattr(error, name, None) for name in names})
    return made


@lru_cache(256)
def _class(state: str) -> type[psycopg.Error]:
    try:
        kind = psycopg.errors.lookup(state)
    except KeyError:
        kind = psycopg.DatabaseError
    return type(kind.__name__, (kind,), {"sqlstate": state, "diag": property(lambda self: self.told)})
