"""Carried: a synchronous function over an async session, which a cancelled caller never leaves half done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def carried(target: Any, fn: Callable[[Any], T], *, shielded: bool = False) -> T:
    """Runs a function by the target's `run_sync`.

    A cancellation reaches what it waits for, so that it puts things back; it goes on when that is done. When
    `shielded` it does not reach it, and goes on when the function is through.
    """
    task = asyncio.ensure_future(target.run_sync(fn))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if cancelled is None and not shielded:
                task.cancel()
            cancelled = cancelled or error
        except BaseException:  # boundary: it is the task's own, which is raised below
            break
    if cancelled is None:
        made: T = task.result()
        return made
    if not task.cancelled():
        task.exception()
    raise cancelled
