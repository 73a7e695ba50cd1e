"""Interrupted: acts that a crash cut off, and that wait until their disk is there to be cleared up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from takeback_acts.files import failures, paths, recovery
from takeback_acts.files.beneath import Home
from takeback_acts.files.locks import Locks
from takeback_acts.files.supply import Supply

if TYPE_CHECKING:
    from takeback.store import Store


class Interrupted:
    """The scripts of earlier processes; until one is cleared up nobody is told what lies at its paths."""

    def __init__(self, store: Store, home: Home, locks: Locks, supply: Callable[[], Supply]) -> None:
        self._store = store
        self._home = home
        self._locks = locks
        self._supply = supply
        self._waiting: dict[str, dict[str, Any]] = {}

    async def look_back(self) -> int:
        """Clears up what earlier processes left; answers how many have to wait. For the start."""
        self._waiting = dict(await recovery.left(self._store))
        for key in list(self._waiting):
            await self._clear_up(key)
        return len(self._waiting)

    async def require_none(self, targets: Iterable[bytes]) -> None:
        """Clears up what waits at these paths, in them or around them.

        Raises TakebackError `files.unreachable` when that still can't be done.
        """
        asked = list(targets) if self._waiting else []
        for key, dumped in list(self._waiting.items()):
            own = recovery.targets(dumped)
            met = [path for path in asked if any(_related(path, one) for one in own)]
            if met:
                async with self._locks.hold(own):
                    if key in self._waiting and not await self._clear_up(key):
                        raise failures.unreachable(met[0])

    async def _clear_up(self, key: str) -> bool:
        dumped = self._waiting[key]
        if not await to_thread.run_sync(recovery.recover, dumped, self._supply(), self._home):
            return False
        await self._store.transaction(partial(recovery.end, id=key))
        del self._waiting[key]
        return True


def _related(path: bytes, other: bytes) -> bool:
    return paths.beneath(path, other) or paths.beneath(other, path)
