"""Desks: an app at its own database, by each driver, and somebody else's hand in the same database."""

from __future__ import annotations

import sqlite3
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker

from takeback_acts.rows import Journal, SyncJournal
from tests.rows.library.models import Base

ASYNC = ("aiosqlite", "psycopg", "asyncpg")
DRIVERS = (*ASYNC, "pysqlite", "psycopg-sync")


class Awaited:
    """A synchronous session, connection or journal under the names and the `await` of its async sister."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name in ("add", "add_all", "expunge", "begin", "begin_nested", "in_transaction", "act"):
            return self._managed(found) if name in ("begin", "begin_nested", "act") else found
        if not callable(found):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            made = found(*map(_inner, args), **kwargs)
            return Awaited(made) if isinstance(made, Connection) else made

        return call

    def _managed(self, made: Any) -> Any:
        @asynccontextmanager
        async def manager(*args: Any, **kwargs: Any) -> Any:
            with made(*map(_inner, args), **kwargs) as found:
                yield found

        return manager

    async def run_sync(self, fn: Any) -> Any:
        return fn(self.inner)


def _inner(given: Any) -> Any:
    return given.inner if isinstance(given, Awaited) else given


class Desk:
    """`session()` is what the app works with, `stranger` runs a statement by another hand and commits it."""

    def __init__(self, driver: str, folder: Path, server: Any) -> None:
        self.driver = driver
        self.server = server
        self.sync = driver in ("pysqlite", "psycopg-sync")
        self.sqlite = "sqlite" in driver
        if self.sqlite:
            self.path = folder / "app.db"
            self.url = f"sqlite+{driver}:///{self.path}"
            self._stranger: Any = sqlite3.connect(self.path, isolation_level=None)
            self._stranger.execute("PRAGMA journal_mode = WAL")
            self._stranger.execute("PRAGMA foreign_keys = ON")
            self._stranger.execute("PRAGMA synchronous = OFF")
        else:
            self.database = server.fresh()
            self.url = server.url(self.database).replace("+psycopg", f"+{driver.removesuffix('-sync')}")
            self._stranger = server.connect(self.database, role="app")
        self.engine = self.new_engine()
        self.maker = self._maker(self.engine)
        self.journal = self.new_journal()

    def new_engine(self, **options: Any) -> Any:
        """Another engine of the app's for the same database."""
        made: Any = (create_engine if self.sync else create_async_engine)(self.url, **options)
        if self.sqlite:
            event.listen(made if self.sync else made.sync_engine, "connect", _configured)
        return made

    def new_journal(self, **rules: Any) -> Any:
        """A journal with other rules."""
        return Awaited(SyncJournal(**rules)) if self.sync else Journal(**rules)

    def _maker(self, engine: Any) -> Any:
        if self.sync:
            return sessionmaker(engine, expire_on_commit=False, class_=Session)
        return async_sessionmaker(engine, expire_on_commit=False, class_=AsyncSession)

    @asynccontextmanager
    async def session(self, engine: Any = None) -> Any:
        """A session, closed in the end."""
        maker = self.maker if engine is None else self._maker(engine)
        if self.sync:
            with maker() as session:
                yield Awaited(session)
        else:
            async with maker() as session:
                yield session

    @asynccontextmanager
    async def connection(self, engine: Any = None) -> Any:
        """A connection, closed in the end."""
        engine = engine or self.engine
        if self.sync:
            with engine.connect() as connection:
                yield Awaited(connection)
        else:
            async with engine.connect() as connection:
                yield connection

    async def create(self) -> None:
        """Makes the app's tables and the journal."""
        async with self.connection() as connection:
            await connection.run_sync(Base.metadata.create_all)
            await connection.commit()
        await self.journal.install(self.engine)

    async def close(self) -> None:
        """Closes everything, and drops the database."""
        if self.sync:
            self.engine.dispose()
        else:
            await self.engine.dispose()
        self._stranger.close()
        if not self.sqlite:
            self.server.drop(self.database)

    def stranger(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """One statement by another hand, committed."""
        if not self.sqlite:
            sql = sql.replace("?", "%s")
        cursor = self._stranger.execute(sql, params or None) if not self.sqlite else self._do(sql, params)
        return cursor.fetchall() if cursor.description is not None else []

    def _do(self, sql: str, params: Any) -> Any:
        return self._stranger.execute(sql, params)

    def dump(self, *tables: str) -> dict[str, list[tuple[Any, ...]]]:
        """All rows of the app's tables, sorted."""
        names = tables or tuple(table.name for table in Base.metadata.sorted_tables)
        return {name: sorted(self.stranger(f"SELECT * FROM {name}"), key=repr) for name in names}

    def entries(self) -> list[tuple[Any, ...]]:
        """The journal: group, point, kind and whether it is taken back."""
        return self.stranger(
            "SELECT grp, point, kind, undone_in IS NOT NULL FROM takeback_journal ORDER BY seq"
        )


def _configured(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA synchronous = OFF")
    cursor.close()
