"""Workers: one thread for each connected database, on which everything that touches it runs, in order."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

import anyio

from takeback.errors import TakebackError

T = TypeVar("T")
S = TypeVar("S", bound="Closable")

# How often a closure that is to end is interrupted, in seconds: between two statements nothing hears of it.
_AGAIN = 0.05


class Closable(Protocol):
    """What a worker opens, and its closures are given."""

    @property
    def usable(self) -> bool:
        """Whether the connection still stands."""

    def interrupt(self) -> None:
        """End the statement that runs, if one does; the only method that is called from another thread."""

    def close(self) -> None:
        """Let go of everything; what is not committed is rolled back."""


class Work(Generic[T]):
    """One closure, waiting or running. `future` has what became of it; it is never cancelled."""

    def __init__(self, fn: Callable[[Any], T]) -> None:
        self.fn = fn
        self.future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.future.add_done_callback(_heard)
        self._lock = threading.Lock()
        self._session: Closable | None = None
        self._dropped = False

    def start(self, session: Closable) -> None:
        """Note that it begins; raises what `dropped` raises where it is not wanted any more."""
        with self._lock:
            if self._dropped:
                raise _dropped()
            self._session = session

    def end(self) -> None:
        """Note that it is over, so that nothing behind it is interrupted."""
        with self._lock:
            self._session = None

    def stop(self) -> None:
        """Interrupt it where it runs; where it has not begun it never will."""
        with self._lock:
            if self._session is None:
                self._dropped = True
            else:
                self._session.interrupt()


class Worker(Generic[S]):
    """Runs closures on a database, one after another, on a thread of its own.

    The session is opened when the first closure needs it and closed when none did for a while. `turn` is held
    by who has a transaction open across closures; closures that write are run by its holder only.
    """

    def __init__(self, name: str, open_session: Callable[[], S], *, idle: float, wait: float) -> None:
        self.name = name
        self._open = open_session
        self._idle = idle
        self._wait = wait
        self._work: queue.SimpleQueue[Work[Any] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._session: S | None = None
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._closed = False

    @property
    def busy(self) -> bool:
        """Whether somebody holds the turn."""
        return self._turn.locked()

    async def acquire(self) -> None:
        """Wait for the turn; raises TakebackError `rows.busy` when it takes too long."""
        if not self._turn.locked() and not self._waiting:
            await self._turn.acquire()  # mostly nobody has it, and then no clock need run
            return
        self._waiting += 1
        try:
            async with asyncio.timeout(self._wait):
                await self._turn.acquire()
        except TimeoutError:
            raise TakebackError(
                "rows.busy",
                f"Database {self.name} is busy with another act or undo",
                "Try again in a moment; nothing was changed.",
                retryable=True,
            ) from None
        finally:
            self._waiting -= 1

    def release(self) -> None:
        """Let the next have the turn."""
        self._turn.release()

    def turn(self) -> Turn:
        """Hold the turn: `async with`; raises what `acquire` raises."""
        return Turn(self)

    def submit(self, fn: Callable[[S], T]) -> Work[T]:
        """Queue a closure. Raises TakebackError `rows.closed` when the worker has ended."""
        if self._closed:
            raise _closed(self.name)
        work = Work[T](fn)
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name=f"rows-{self.name}", daemon=True)
            self._thread.start()
        self._work.put(work)
        return work

    async def run(self, fn: Callable[[S], T], *, seconds: float) -> T:
        """Run a closure; raises what it raises, and TakebackError `rows.deadline` when its time was over."""
        return await self.outcome(self.submit(fn), seconds=seconds)

    async def outcome(self, work: Work[T], *, seconds: float) -> T:
        """What became of a closure; when the caller is cancelled, or time is over, it is ended first.

        A closure that is through all the same has its result, also after its time.
        """
        try:
            await asyncio.wait((work.future,), timeout=seconds)
        except asyncio.CancelledError:
            await self.stop(work)
            raise
        if work.future.done():
            return work.future.result()
        await self.stop(work)
        if work.future.exception() is None:
            return work.future.result()
        raise deadline(self.name, seconds) from None

    async def close(self) -> None:
        """End what runs, close the session, and wait for the thread."""
        self._closed = True
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._work.put(None)
        with anyio.CancelScope(shield=True):
            await asyncio.to_thread(thread.join)

    async def stop(self, work: Work[T]) -> None:
        """End a closure, and wait until it has: it may be through all the same."""
        with anyio.CancelScope(shield=True):
            while not work.future.done():
                await asyncio.to_thread(work.stop)  # it may have to ask a server
                await asyncio.wait((work.future,), timeout=_AGAIN)

    # ------------------------------------------------------------------ on the thread

    def _serve(self) -> None:
        while True:
            try:
                work = self._work.get(timeout=self._idle if self._session is not None else None)
            except queue.Empty:
                if not self.busy:
                    self._end_session()
                continue
            if work is None:
                self._end_session()
                return
            self._do(work)

    def _do(self, work: Work[Any]) -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            work.start(session := self._there())
            result = work.fn(session)
        except BaseException as raised:  # boundary: whatever it is, who waits must hear of it
            error = raised
        finally:
            work.end()
        if self._session is not None and not self._session.usable:
            self._end_session()
        loop = work.future.get_loop()
        with suppress(RuntimeError):  # the loop has ended, and with it who waited
            loop.call_soon_threadsafe(_deliver, work.future, result, error)

    def _there(self) -> S:
        if self._session is None:
            self._session = self._open()
        return self._session

    def _end_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with suppress(Exception):  # boundary: a connection that is gone can't be closed any better
                session.close()


class Turn:
    """The turn of a worker, held within `async with`."""

    __slots__ = ("_worker",)

    def __init__(self, worker: Worker[Any]) -> None:
        self._worker = worker

    async def __aenter__(self) -> None:
        await self._worker.acquire()

    async def __aexit__(self, *raised: object) -> None:
        self._worker.release()


def deadline(name: str, seconds: float) -> TakebackError:
    """A statement was ended because its time was over."""
    return TakebackError(
        "rows.deadline",
        f"A statement on database {name} did not end within {seconds:g} s and was rolled back",
        "Ask for less at once, or raise [rows] statement_seconds.",
    )


def _deliver(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if error is None:
        future.set_result(result)
    elif isinstance(error, StopIteration):  # the one exception that a future refuses
        future.set_exception(RuntimeError("a closure raised StopIteration"))
    else:
        future.set_exception(error)


def _heard(future: asyncio.Future[Any]) -> None:
    """Who was cancelled does not ask for the outcome; asyncio would complain of an error nobody took."""
    if not future.cancelled():
        future.exception()


def _dropped() -> TakebackError:
    return TakebackError("rows.deadline", "It was not begun any more", retryable=True)


def _closed(name: str) -> TakebackError:
    return TakebackError(
        "rows.closed",
        f"Database {name} is being disconnected, or takeback stops",
        "Try again later.",
        retryable=True,
    )
