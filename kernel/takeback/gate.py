"""The count of a module's calls in flight, and whether new ones may come in."""

from __future__ import annotations

import anyio


class Gate:
    """One module's gate: a caller looks at `open`, then pairs `enter()` with `leave()` around the call.

    `inflight` is the number of calls inside. Both methods only count, for they stand in every call's path.
    """

    __slots__ = ("_idle", "inflight", "open")

    def __init__(self, *, open: bool = False) -> None:
        self.open = open
        self.inflight = 0
        self._idle: anyio.Event | None = None

    def enter(self) -> None:
        """Count a call in."""
        self.inflight += 1

    def leave(self) -> None:
        """Count a call out."""
        self.inflight -= 1
        if self._idle is not None and not self.inflight:
            self._idle.set()

    async def idle(self) -> None:
        """Return when no call is in flight."""
        while self.inflight:
            if self._idle is None or self._idle.is_set():
                self._idle = anyio.Event()
            await self._idle.wait()
        self._idle = None

    async def drain(self, deadline: float) -> bool:
        """Close the gate and wait at most `deadline` seconds; true when no call is left in flight."""
        self.open = False
        with anyio.move_on_after(deadline):
            await self.idle()
        return not self.inflight
