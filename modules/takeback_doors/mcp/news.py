"""What happens in the kernel that open streams must hear of, or end by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from takeback import Event
from takeback.events import Events
from takeback.router import Router
from takeback_doors.mcp.listeners import Listeners
from takeback_doors.mcp.pipe import Pipe


class News:
    """Turns what the kernel tells into notices: changed agents, and changed tools by the router's count.

    Notices go out from a task of their own, since what stirs must not wait for clients.
    """

    def __init__(self, events: Events, tools: Router, listeners: Listeners, pipe: Pipe) -> None:
        self._events = events
        self._tools = tools
        self._listeners = listeners
        self._pipe = pipe
        self._generation = tools.generation
        self._agents: set[str] = set()
        self._woken = anyio.Event()

    @contextmanager
    def subscribed(self) -> Iterator[None]:
        """Hear of changed agents and tools while inside."""
        stops = self._events.on("agents.changed", self._hear), self._tools.on_change(self._stir)
        try:
            yield
        finally:
            for stop in stops:
                stop()

    async def spread(self) -> None:
        """Pass on what was heard, for ever."""
        while True:
            await self._woken.wait()
            self._woken = anyio.Event()
            agents, self._agents = self._agents, set()
            for agent in agents:
                await self._listeners.recheck(agent)
                await self._pipe.recheck(agent)
            if self._tools.generation != self._generation:
                self._generation = self._tools.generation
                await self._listeners.changed()

    def _stir(self) -> None:
        self._woken.set()

    def _hear(self, seq: int, event: Event) -> None:
        self._agents.add(str(getattr(event, "name", "")))
        self._woken.set()
