"""Locks: one act at a time on a path and all that lies in it, so that log and disk have one order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import anyio

from takeback_acts.files.ancestry import lineage


class Locks:
    """Paths in use. Acts on unrelated paths run beside each other; on related ones in the order they came."""

    def __init__(self) -> None:
        self._held: list[tuple[frozenset[bytes], anyio.Event]] = []

    @asynccontextmanager
    async def hold(self, paths: Collection[bytes]) -> AsyncIterator[None]:
        """Waits for every earlier act on a related path, then holds these."""
        own = (frozenset(paths), anyio.Event())
        ahead = [event for held, event in self._held if _related(held, own[0])]
        self._held.append(own)
        try:
            for event in ahead:
                await event.wait()
            yield
        finally:
            self._held.remove(own)
            own[1].set()


def _related(some: frozenset[bytes], others: frozenset[bytes]) -> bool:
    return _leads_to(some, others) or _leads_to(others, some)


def _leads_to(some: frozenset[bytes], others: frozenset[bytes]) -> bool:
    """Whether one of them is one of the others or a folder around it."""
    return any(not some.isdisjoint(lineage(other)) for other in others)
