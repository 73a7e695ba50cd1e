"""The journal of an app: what it adds to an ORM flush of 100 rows, durable, in the app's own database."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from benchmarks.measure import Figure, compare
from takeback_acts.rows import Journal
from tests.rows import server

_ROWS = 100
_TIMES = 10
_TABLES = 8


class Base(DeclarativeBase):
    """An app with eight tables, as the one of the reference."""


def _table(number: int) -> type[Base]:
    columns = {f"text{each}": mapped_column() for each in range(6)}
    notes: dict[str, object] = {"id": Mapped[int], **dict.fromkeys(columns, Mapped[str])}
    body = {"__tablename__": f"section{number}", "__annotations__": notes, **columns}
    return type(f"Section{number}", (Base,), body | {"id": mapped_column(primary_key=True)})


SECTIONS = [_table(number) for number in range(_TABLES)]


class App:
    """One database, with and without the journal around what is flushed."""

    def __init__(self, url: str) -> None:
        self.engine: AsyncEngine = create_async_engine(url)
        if "sqlite" in url:
            event.listen(self.engine.sync_engine, "connect", _configured)
        self.sessions = async_sessionmaker(self.engine, expire_on_commit=False, class_=AsyncSession)
        self.journal = Journal()

    async def begin(self, *, installed: bool) -> None:
        async with self.engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        if installed:
            await self.journal.install(self.engine)

    async def bare(self) -> float:
        started = time.perf_counter()
        for _ in range(_TIMES):
            async with self.sessions() as session:
                session.add_all(_rows())
                await session.commit()
        return (time.perf_counter() - started) / _TIMES

    async def journaled(self) -> float:
        started = time.perf_counter()
        for _ in range(_TIMES):
            async with self.sessions() as session:
                async with self.journal.act(session, group=1, point=1, tool="create"):
                    session.add_all(_rows())
                await session.commit()
        return (time.perf_counter() - started) / _TIMES


def _rows() -> list[Base]:
    text = "a line as somebody writes it"
    return [SECTIONS[0](**{f"text{each}": text for each in range(6)}) for _ in range(_ROWS)]


def _configured(connection, _) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


async def _figure(what: str, url: str, bare_url: str) -> Figure:
    """The floor has a database of its own, which knows nothing of a journal."""
    ours, floor = App(url), App(bare_url)
    await ours.begin(installed=True)
    await floor.begin(installed=False)
    await ours.journaled()
    await floor.bare()
    times = await compare({"ours": ours.journaled, "floor": floor.bare})
    await ours.engine.dispose()
    await floor.engine.dispose()
    return Figure(what, times["ours"], times["floor"], "the flush alone", 1.5)


async def figures() -> list[Figure]:
    """One line for each engine and driver."""
    made = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("TAKEBACK_BENCH_DIR")) as folder:
        urls = [f"sqlite+aiosqlite:///{Path(folder) / name}" for name in ("ours.db", "floor.db")]
        made.append(await _figure("Journal.act around a flush of 100 rows, SQLite", *urls))
    postgres = server.make()
    try:
        for driver in ("psycopg", "asyncpg"):
            urls = [
                postgres.url(postgres.fresh()).replace("+psycopg", f"+{driver}") for _ in ("ours", "floor")
            ]
            made.append(await _figure(f"the same, PostgreSQL through {driver}", *urls))
    finally:
        postgres.stop()
    return made
