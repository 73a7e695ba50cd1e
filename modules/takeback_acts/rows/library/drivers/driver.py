"""Driver: how the engine's code, which is synchronous, reaches the connection that an app has open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from takeback.errors import RefusedError
from takeback_acts.rows.dialect import Link

T = TypeVar("T")


class Driver(Protocol):
    """One physical connection of an app's pool."""

    def run(self, fn: Callable[[Link], T]) -> T:
        """Runs a function over the connection, where that may be used from."""
        ...

    def autocommits(self) -> bool:
        """Whether each statement is a transaction of its own."""
        ...


def of(connection: Any) -> Driver:
    """The driver of SQLAlchemy's connection. RefusedError("journal.driver") when it is none of ours."""
    dialect, pooled = connection.dialect, connection.connection
    if dialect.name == "sqlite" and dialect.driver in ("pysqlite", "aiosqlite"):
        from takeback_acts.rows.library.drivers.sqlite import SqliteDriver

        return SqliteDriver(pooled.driver_connection, is_async=dialect.is_async)
    if dialect.name == "postgresql" and dialect.driver.startswith("psycopg") and dialect.driver != "psycopg2":
        from takeback_acts.rows.library.drivers.psycopg import PsycopgDriver

        return PsycopgDriver(pooled.driver_connection, is_async=dialect.is_async)
    if dialect.name == "postgresql" and dialect.driver == "asyncpg":
        from takeback_acts.rows.library.drivers.asyncpg import AsyncpgDriver

        return AsyncpgDriver(pooled.dbapi_connection, pooled.driver_connection)
    raise RefusedError(
        "journal.driver",
        f"There is no journal for {dialect.name} through {dialect.driver}.",
        "Use sqlite3 or aiosqlite, psycopg (3) or asyncpg.",
    )
