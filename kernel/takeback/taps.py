"""Taps: the same change asked for many times at once is made once, and everybody gets the same answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

from takeback.errors import TakebackError

T = TypeVar("T")


class _Tap(Generic[T]):
    def __init__(self) -> None:
        self.done = anyio.Event()
        self.outcome: T | None = None
        self.error: Exception | None = None


class Taps(Generic[T]):
    """Makes each change in a task of a module, so that a caller who leaves doesn't leave it half done.

    All go one after another: a plan made while another is executed would be out of date at once.
    """

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._lock = anyio.Lock()
        self._under_way: dict[tuple[object, ...], _Tap[T]] = {}

    async def run(self, what: tuple[object, ...], work: Callable[[], Awaitable[T]]) -> T:
        """Do `work` unless the same is under way, and answer its outcome; raises what it raises."""
        tap = self._under_way.get(what)
        if tap is None:
            tap = self._under_way[what] = _Tap()
            self._tasks.start_soon(self._do, what, tap, work)
        await tap.done.wait()
        if tap.error is not None:
            raise _again(tap.error)
        assert tap.outcome is not None
        return tap.outcome

    async def _do(self, what: tuple[object, ...], tap: _Tap[T], work: Callable[[], Awaitable[T]]) -> None:
        try:
            with anyio.CancelScope(shield=True):
                async with self._lock:
                    tap.outcome = await work()
        except Exception as error:
            tap.error = error
        finally:
            self._under_way.pop(what, None)
            tap.done.set()


def _again(error: Exception) -> Exception:
    """A fresh copy for each waiter: one exception object raised in many tasks mixes up their tracebacks."""
    return TakebackError.from_dict(error.as_dict()) if isinstance(error, TakebackError) else error
