"""Hearing: being woken when something changes in folders. A hint and no more; what is true is looked at."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
from anyio import CapacityLimiter, to_thread
from watchfiles._rust_notify import RustNotify

# In milliseconds: how long a change waits for others, and how long they may keep it waiting.
_STEP = 100
_MOST = 1000


class Hearing:
    """What is heard: `deaf` is what the system said when it can't listen, `lost` that it no longer does."""

    def __init__(self, deaf: str = "") -> None:
        self.deaf = deaf
        self.lost = False


@asynccontextmanager
async def hearing(folders: Sequence[str], wake: Callable[[], None]) -> AsyncIterator[Hearing]:
    """Calls `wake` when something has changed in one of the folders, not beneath them, and when it is lost.

    Whatever changes after it was entered is heard.
    """
    ears = _ears(folders)
    if isinstance(ears, str):
        yield Hearing(ears)
        return
    stop, heard = threading.Event(), Hearing()
    with ears:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_listen, ears, stop, heard, wake)
            try:
                yield heard
            finally:
                stop.set()


def _ears(folders: Sequence[str]) -> RustNotify | str:
    try:
        # By its own class, not by `awatch`: that does not tell from when on it hears.
        return RustNotify(list(folders), False, False, 0, False, False)
    except (OSError, RuntimeError) as error:
        return str(error) or type(error).__name__


async def _listen(ears: RustNotify, stop: threading.Event, heard: Hearing, wake: Callable[[], None]) -> None:
    # A thread of its own, lest it takes the place of one that others wait for.
    own = CapacityLimiter(1)
    try:
        while isinstance(await to_thread.run_sync(ears.watch, _MOST, _STEP, 0, stop, limiter=own), set):
            wake()
    except (OSError, RuntimeError):
        # One name that is no text is enough. Others may follow at once, and each costs a new start.
        await anyio.sleep(_STEP / 1000)
        heard.lost = True
        wake()
