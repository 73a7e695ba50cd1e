"""An act on one row through the kernel, against the same update in one closure without a journal."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.databases import Database, Postgres, Sqlite, postgres
from benchmarks.measure import Figure, compare
from takeback import Context, Kernel
from takeback_acts.rows.module import RowsModule
from takeback_acts.rows.workers import Worker
from takeback_core.audit.module import AuditModule
from takeback_core.undo.module import UndoModule

MODULES = [UndoModule, RowsModule, AuditModule]
FEW, MANY = 1_000, 1_000_000
_TIMES = 20
_ROUNDS = 41
# So that each update of a round meets a page of its own, as those of somebody's do.
_STRIDE = 7919


class Bare:
    """The driver's own connection on a worker's thread, with nothing around it."""

    usable = True

    def __init__(self, database: Database) -> None:
        self.database = database
        self.connection = database.plain()

    def interrupt(self) -> None:
        """Nothing runs for long."""

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def update(self, key: int) -> None:
        """One update, durable."""
        self.database.update(self.connection, key, f"plain {key}")


async def figures() -> list[Figure]:
    """One journaled update, durable, one caller: each engine; then in a small and in a large table."""
    found = []
    with tempfile.TemporaryDirectory() as folder, postgres() as server:
        place = Path(folder)
        for what, mode in (("rollback journal", "delete"), ("WAL", "wal")):
            database = Sqlite(place / f"{mode}.db", FEW, mode)
            found.append(await _act(f"rows.update, SQLite, {what}", database, place / mode))
        found.append(await _act("rows.update, PostgreSQL", Postgres(server, FEW), place / "pg"))
        few, many = Sqlite(place / "few.db", FEW), Sqlite(place / "many.db", MANY)
        found.append(await _growth(few, many, place / "growth"))
        found.append(await _growth(Postgres(server, FEW), Postgres(server, MANY), place / "pg-growth"))
    return found


async def connected(stack: AsyncExitStack, home: Path, **databases: Database) -> Context:
    """A person's context of a kernel that runs as long as the stack, with databases connected by name."""
    kernel = await stack.enter_async_context(Kernel(home, settings={}, modules=MODULES))
    ctx = kernel.enter("cli:person", session="bench")
    for name, database in databases.items():
        await ctx.call("rows.connect", {"name": name, "url": database.url})
    return ctx


async def _act(what: str, database: Database, home: Path) -> Figure:
    async with AsyncExitStack() as stack:
        ctx = await connected(stack, home, main=database)
        worker = Worker[Bare]("bare", lambda: Bare(database), idle=60, wait=10)
        stack.push_async_callback(worker.close)

        async def plain(key: int) -> Any:
            return await worker.run(lambda bare: bare.update(key), seconds=60)

        ours, bare = _sample(_updater(ctx, "main"), FEW), _sample(plain, FEW)
        taken = await compare({"ours": ours, "bare": bare}, rounds=_ROUNDS)
    return Figure(what, taken["ours"], taken["bare"], "the update alone, on such a thread", 2)


async def _growth(few: Database, many: Database, home: Path) -> Figure:
    async with AsyncExitStack() as stack:
        ctx = await connected(stack, home, few=few, many=many)
        small, large = _sample(_updater(ctx, "few"), FEW), _sample(_updater(ctx, "many"), MANY)
        taken = await compare({"few": small, "many": large}, rounds=_ROUNDS)
    what = f"rows.update in {MANY:,} rows, {few.name}"
    return Figure(what, taken["many"], taken["few"], f"in {FEW:,} rows", 1.2)


def _updater(ctx: Context, database: str) -> Callable[[int], Awaitable[Any]]:
    numbers = count()

    async def update(key: int) -> Any:
        sets = {"title": f"ours {next(numbers)}"}
        return await ctx.call(
            "rows.update", {"database": database, "table": "skill", "key": key, "set": sets}
        )

    return update


def _sample(update: Callable[[int], Awaitable[Any]], rows: int) -> Callable[[], Awaitable[float]]:
    numbers = count()

    async def sample() -> float:
        started = time.perf_counter()
        for _ in range(_TIMES):
            await update(next(numbers) * _STRIDE % rows)
        return (time.perf_counter() - started) / _TIMES

    return sample
