"""Closures that write: one or many of them in one durable commit."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from takeback import faults, outbox
from takeback.errors import TakebackError
from takeback.outbox import Event
from takeback.outline import name_of, outline
from takeback.sqlite import typed

T = TypeVar("T")
Told = Sequence[tuple[int, Event]]
Values = Sequence[Any] | Mapping[str, Any]

log = logging.getLogger(__name__)


class Transaction:
    """What a closure writes through. It ends with the closure and must not leave it.

    Foreign keys are enforced. Constraints must not be DEFERRABLE (they would be checked at a commit that
    others share), and the closure must not begin, commit or roll back itself.
    """

    __slots__ = ("connection", "emitted")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.emitted: list[tuple[int, Event]] = []

    def execute(self, sql: str, params: Values = ()) -> sqlite3.Cursor:
        """Runs one statement; rows come as `sqlite3.Row`."""
        return self.connection.execute(sql, params)

    def executemany(self, sql: str, rows: Iterable[Values]) -> sqlite3.Cursor:
        """Runs one statement for each of the rows."""
        return self.connection.executemany(sql, rows)

    def emit(self, event: Event) -> int:
        """Stores an event with this transaction, to be told after its commit; returns its number."""
        seq = outbox.write(self.connection, event)
        self.emitted.append((seq, event))
        return seq


class Job(Generic[T]):
    """A closure on its way through the writer."""

    __slots__ = ("_waiters", "abandoned", "durable", "emitted", "error", "fn", "result", "settled")

    def __init__(self, fn: Callable[[Transaction], T], durable: Callable[[], None] | None = None) -> None:
        self.fn = fn
        self.durable = durable
        self.result: T | None = None
        self.error: BaseException | None = None
        self.emitted: Told = ()
        self.abandoned = False
        self.settled = False
        self._waiters: list[asyncio.Future[None]] = []

    async def wait(self) -> T:
        """The closure's result once durable, or what it raised. Cancelling the wait doesn't stop the job."""
        await self.fate()
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value] # the writer sets it wherever there is no error

    async def fate(self) -> None:
        """Waits until the job is committed or undone, whichever it was."""
        if not self.settled:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def settle(self) -> None:
        """Tells everyone who waits; the store calls it on the loop, once."""
        self.settled = True
        if self.error is not None and not self._waiters:
            log.error("a submitted transaction failed: %s: %s", name_of(self.fn), outline(self.error))
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)


def commit(connection: sqlite3.Connection, batch: Sequence[Job[Any]]) -> None:
    """Runs the jobs in order and makes them durable together. Each gets its outcome; nothing is raised."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        faults.point("store.begun")
        _run_first(connection, batch[0])
        for job in batch[1:]:
            _run_beside(connection, job)
        faults.point("store.ran")
        if connection.in_transaction:
            connection.execute("COMMIT")
            _spread(batch)
    except BaseException as error:
        for job in batch:
            _fail(job, error)
        connection.rollback()


def _spread(batch: Sequence[Job[Any]]) -> None:
    """Tells those who wait on another thread, for whom the way by the loop would be a long one."""
    for job in batch:
        if job.durable is not None and job.error is None:
            job.durable()


def _run_first(connection: sqlite3.Connection, job: Job[Any]) -> None:
    """Without a savepoint: what is undone with it is its own alone."""
    _run(connection, job)
    if job.error is not None:
        connection.rollback()
        connection.execute("BEGIN IMMEDIATE")


def _run_beside(connection: sqlite3.Connection, job: Job[Any]) -> None:
    connection.execute("SAVEPOINT job")
    _run(connection, job)
    if job.error is not None:
        if not connection.in_transaction:  # SQLite has undone the neighbours as well: a full disk does it
            raise job.error
        connection.execute("ROLLBACK TO job")
    connection.execute("RELEASE job")


def _run(connection: sqlite3.Connection, job: Job[Any]) -> None:
    tx = Transaction(connection)
    try:
        if not job.abandoned:
            job.result = job.fn(tx)
            job.emitted = tx.emitted
            if not connection.in_transaction:
                raise _misused(job)
    except BaseException as error:
        _fail(job, error)
    if job.abandoned:
        _fail(job, asyncio.CancelledError())


def _fail(job: Job[Any], error: BaseException) -> None:
    if job.error is None:
        job.error = typed(error)
    job.result = None
    job.emitted = ()


def _misused(job: Job[Any]) -> TakebackError:
    return TakebackError(
        "store.misused",
        f"The closure {name_of(job.fn)} ended the transaction that it runs in.",
        "Report it to the module's author: a closure must not commit or roll back.",
    )
