"""The store: whole transactions as closures, and many of them to one durable commit."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import aiosqlite
import anyio

from takeback import faults, migrations, outbox, sqlite
from takeback.errors import TakebackError
from takeback.transactions import Job, Told, Transaction, commit

__all__ = ["Job", "Store", "Transaction"]

T = TypeVar("T")

_OWN_SCRIPTS = (outbox.TABLE,)
# Seconds that a job waits for a ride at most: each commit costs a sync of the disk, and the next is near.
_RIDE = 0.005


class Store:
    """One SQLite database, written by one thread and read by another.

    Only the writer ever changes or checkpoints the file: SQLite before 3.51.3 can lose pages of a WAL when
    two connections do so at the same time.
    """

    def __init__(self, path: Path, writer: aiosqlite.Connection, reader: aiosqlite.Connection) -> None:
        self.path = path
        self._writer = writer
        self._reader = reader
        self._raw = writer._conn
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Job[Any]] = deque()
        self._last: Job[Any] | None = None
        self._handed_over = False
        self._leaving: asyncio.TimerHandle | None = None
        self._closed = False
        self._listener: Callable[[Told], None] | None = None

    @classmethod
    async def open(cls, path: Path, *, busy_seconds: float = 5.0) -> Store:
        """Opens the database of a home that the caller has locked, making it when there is none.

        Raises `store.corrupt` (the file is left as it is), `store.readonly`, `store.full`, `store.busy`,
        `store.io` and `store.future`.
        """
        sqlite.inspect(path)
        with anyio.CancelScope(shield=True):  # a cancelled connect would leave its thread behind
            writer = await sqlite.connect_writer(path, busy_seconds)
            try:
                reader = await sqlite.connect_reader(path, busy_seconds)
            except BaseException:
                await writer.close()
                raise
            store = cls(path, writer, reader)
            try:
                await store.transaction(migrations.prepare)
                await store.migrate("kernel", _OWN_SCRIPTS)
            except BaseException:
                await store.close()
                raise
        return store

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def transaction(
        self, fn: Callable[[Transaction], T], *, durable: Callable[[], None] | None = None
    ) -> T:
        """Runs `fn(tx)` on the writer's thread and returns its result once that is durable.

        What `fn` raises undoes its own writes and nobody else's. When the caller is cancelled, a closure that
        isn't through yet is undone; the cancellation goes on when its fate is known. `durable` is called on
        the writer's thread as soon as the commit is; it must be quick and raise nothing.
        """
        job = self.submit(fn, durable=durable)
        try:
            return await job.wait()
        except asyncio.CancelledError:
            job.abandoned = True
            with contextlib.suppress(asyncio.CancelledError):  # the first one goes on
                await _to_the_end(job.fate())
            raise

    def submit(
        self,
        fn: Callable[[Transaction], T],
        *,
        ride: bool = False,
        durable: Callable[[], None] | None = None,
    ) -> Job[T]:
        """Queues `fn` without waiting; it is committed no later than anything queued after it.

        With `ride` it shares the commit of what is queued next, and begins one by itself only when nothing
        is for some milliseconds: for what nobody waits for. A failure that nobody waits for is logged. Raises
        `store.closed`. To be called on the loop's thread.
        """
        self._require_open()
        job = Job(fn, durable)
        self._queue.append(job)
        self._last = job
        if not ride:
            self._set_off()
        elif self._leaving is None:
            self._leaving = self._loop.call_later(_RIDE, self._set_off)
        return job

    async def read(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Runs `fn(connection)` on the reader's thread, in one snapshot that has everything submitted before.

        Rows come as `sqlite3.Row`. Raises `store.closed`, `store.corrupt`, `store.io`.
        """
        last = self._last
        if last is not None and not last.settled:
            self._set_off()  # it may have been waiting for a ride
            await last.fate()
        self._require_open()
        return await sqlite.run(self._reader, lambda connection: sqlite.snapshot(connection, fn))

    async def migrate(self, module: str, scripts: tuple[str, ...]) -> None:
        """Brings a module's tables up to date, each script in a transaction of its own.

        Raises `store.future`, `store.migration_changed` and `store.migration_failed`.
        """
        done = await self.read(lambda connection: migrations.applied(connection, module, scripts))
        for version, script in enumerate(scripts[done:], start=done + 1):
            await self.transaction(partial(migrations.apply, module=module, version=version, script=script))

    async def check(self) -> list[str]:
        """What SQLite finds wrong with the whole file; empty when it is sound. Takes long on a large one."""
        rows = await self.read(lambda connection: connection.execute("PRAGMA quick_check").fetchall())
        found = [str(row[0]) for row in rows]
        return [] if found == ["ok"] else found

    def tell(self, listener: Callable[[Told], None]) -> None:
        """Gives every batch's committed events to `listener`, on the loop, before its callers go on."""
        self._listener = listener

    async def close(self) -> None:
        """Finishes everything queued and closes the file. A second close does nothing."""
        if self._closed:
            return
        self._closed = True
        await _to_the_end(self._finish())

    async def _finish(self) -> None:
        self._set_off()
        # Each closes after what its thread has been given; the writer last, so that it folds the WAL in.
        await self._reader.close()
        await self._writer.close()

    def _require_open(self) -> None:
        if self._closed:
            raise TakebackError("store.closed", "The database is closed.", "Start takeback again.")

    def _set_off(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        # Set after the append and cleared before the take: a job is either taken or brings its own drain.
        if not self._handed_over:
            self._handed_over = True
            sqlite.hand_over(self._writer, self._drain)

    def _drain(self) -> None:
        """Takes all that is queued through one commit, on the writer's thread."""
        self._handed_over = False
        batch: list[Job[Any]] = []
        while self._queue:
            batch.append(self._queue.popleft())
        if batch:
            try:
                commit(self._raw, batch)
                faults.point("store.committed")
            finally:
                self._loop.call_soon_threadsafe(self._settle, batch)

    def _settle(self, batch: list[Job[Any]]) -> None:
        """Tells a batch's events, then its callers, on the loop."""
        faults.point("store.delivering")
        try:
            told = [event for job in batch for event in job.emitted]
            if told and self._listener is not None:
                self._listener(told)
        finally:
            for job in batch:
                job.settle()


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Waits until `work` is through however often it is cancelled, and only then lets that go on."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled
