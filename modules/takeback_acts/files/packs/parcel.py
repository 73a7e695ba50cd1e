"""Parcels: blobs handed to the appender together, and how whoever waits hears that they are durable."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import NamedTuple

from takeback_acts.files.packs.record import Head


class Wanted(NamedTuple):
    """One record to be written: its head, the label behind it, and the payload."""

    head: Head
    owner: str
    payload: bytes


class Parcel:
    """Records that become durable together: `now`, or else with a later parcel's sync."""

    def __init__(self, wanted: list[Wanted], *, now: bool) -> None:
        self.wanted = wanted
        self.now = now
        self.error: BaseException | None = None
        self._done = False
        self._lock = threading.Lock()
        self._waiting: list[Callable[[], None]] = []

    @property
    def done(self) -> bool:
        """Whether it is known how it ended."""
        return self._done

    def settle(self, error: BaseException | None = None) -> None:
        """Tells everybody who waits; a second time does nothing."""
        with self._lock:
            if self._done:
                return
            self._done, self.error = True, error
            waiting, self._waiting = self._waiting, []
        for tell in waiting:
            tell()

    def wait(self) -> None:
        """Blocks until the records are durable; raises what kept them from it."""
        self.ended()
        self._judge()

    def ended(self) -> None:
        """Blocks until it is known how it ended."""
        gate = threading.Lock()
        gate.acquire()
        self._then(gate.release)
        gate.acquire()

    async def reached(self) -> None:
        """Waits on the loop until the records are durable; raises what kept them from it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(_resolve, future)

        self._then(tell)
        await future
        self._judge()

    def _then(self, tell: Callable[[], None]) -> None:
        with self._lock:
            if not self._done:
                self._waiting.append(tell)
                return
        tell()

    def _judge(self) -> None:
        if self.error is not None:
            raise self.error


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Pending(NamedTuple):
    """A blob on its way: with which parcel, and for whom how much room was taken."""

    parcel: Parcel
    owner: str
    size: int
