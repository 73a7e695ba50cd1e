"""How long the supervisor waits for a module, and how it waits."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the supervisor waits, in seconds, and how often it tries.

    `start` to be ready, `drain` for calls in flight, `stop` to leave, `cancel` after each cancellation. A
    module that fails after it ran is started again after `first`, twice that, and so on up to `longest`,
    `restarts` times; one that ran for `well` begins anew. `sleep` and `now` are the clock.
    """

    start: float = 10.0
    drain: float = 5.0
    stop: float = 5.0
    cancel: float = 1.0
    first: float = 1.0
    longest: float = 60.0
    restarts: int = 5
    well: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    now: Callable[[], float] = time.monotonic

    def pause(self, restart: int) -> float:
        """The pause before this restart, counted from 1."""
        return min(self.first * 2.0 ** (restart - 1), self.longest)


class Watch:
    """Waits for conditions that hold once something has changed; who changes something calls `poke`."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._changed = anyio.Event()

    def poke(self) -> None:
        """Let everybody look again."""
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, done: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until `done()`, at most so many seconds; answers whether it is."""
        if seconds is None or done():
            while not done():
                await self._changed.wait()
            return True
        async with anyio.create_task_group() as race:
            race.start_soon(self._expire, race.cancel_scope, seconds)
            while not done():
                await self._changed.wait()
            race.cancel_scope.cancel()
        return done()

    async def _expire(self, scope: anyio.CancelScope, seconds: float) -> None:
        await self._patience.sleep(seconds)
        scope.cancel()
