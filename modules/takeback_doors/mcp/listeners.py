"""Who hears that its tools changed: open streams of both protocol eras, each asked for its token again."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
from mcp.server import ServerRequestContext
from mcp.server.connection import Connection
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, SubscriptionsListenRequestParams, SubscriptionsListenResult

from takeback import ToolSpec
from takeback_doors.mcp.catalogue import Catalogue
from takeback_doors.mcp.visitors import Visitor, Visitors

_log = logging.getLogger("takeback.mcp")
_SEEN = "takeback.listener"
# A client that stopped reading must not keep the others from hearing.
_PATIENCE = 2.0
_Request = ServerRequestContext[Any, Any]


class Listener:
    """One open stream: whose it is, what its agent was last told of, how to tell it and how to end it."""

    def __init__(
        self,
        visitor: Visitor,
        told: tuple[ToolSpec, ...],
        tell: Callable[[], Awaitable[None]],
        end: Callable[[], Awaitable[None]],
    ) -> None:
        self.visitor = visitor
        self.told = told
        self.tell = tell
        self.end = end


class Listeners:
    """Every open stream and handshake client.

    `end_session` ends a handshake client's HTTP session; it is set by the module once there is an endpoint.
    """

    def __init__(self, catalogue: Catalogue, visitors: Visitors, most: int) -> None:
        self._catalogue = catalogue
        self._visitors = visitors
        self._most = most
        self._open: set[Listener] = set()
        self.end_session: Callable[[str, Visitor], Awaitable[None]] | None = None

    def __len__(self) -> int:
        return len(self._open)

    async def serve(
        self, visitor: Visitor, ctx: _Request, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve one `subscriptions/listen` stream until the client or the door ends it."""
        if len(self._open) >= self._most:
            raise MCPError(INTERNAL_ERROR, "Too many open streams")
        bus = InMemorySubscriptionBus()
        handler = ListenHandler(bus)

        async def end() -> None:
            handler.close()

        listener = self._add(visitor, partial(bus.publish, ToolsListChanged()), end)
        try:
            return await handler(ctx, params)
        finally:
            self._open.discard(listener)

    def remember(self, visitor: Visitor, ctx: _Request) -> None:
        """Keep a handshake client, whose changes are told over its connection, until that closes."""
        # The SDK has no public accessor for it; without it handshake clients would only miss the notices.
        connection: Connection = ctx.session._connection
        if _SEEN in connection.state:
            return
        connection.state[_SEEN] = True
        listener = self._add(visitor, connection.send_tool_list_changed, partial(self._hang_up, ctx, visitor))
        connection.exit_stack.callback(self._open.discard, listener)

    async def changed(self) -> None:
        """Tell those whose tools are not what they were, and end those whose token is no good any more."""
        for listener in list(self._open):
            if listener not in self._open or not await self._still_good(listener):
                continue
            specs = self._catalogue.page(listener.visitor.label).specs
            if specs != listener.told:
                listener.told = specs
                await self._tell(listener)

    async def recheck(self, agent: str) -> None:
        """End the streams of an agent whose token is no good any more."""
        for listener in list(self._open):
            if listener.visitor.name == agent:
                await self._still_good(listener)

    async def end_all(self) -> None:
        """End every stream, as at a stop."""
        for listener in list(self._open):
            await self._end(listener)

    async def _tell(self, listener: Listener) -> None:
        if not await _try(listener, listener.tell):
            await self._end(listener)

    async def _still_good(self, listener: Listener) -> bool:
        if await self._visitors.is_good(listener.visitor.token):
            return True
        await self._end(listener)
        return False

    async def _end(self, listener: Listener) -> None:
        self._open.discard(listener)
        await _try(listener, listener.end)

    async def _hang_up(self, ctx: _Request, visitor: Visitor) -> None:
        if ctx.request is None:
            await ctx.lifespan_context.end()
        elif (session := ctx.session._connection.session_id) and self.end_session is not None:
            await self.end_session(session, visitor)

    def _add(
        self, visitor: Visitor, tell: Callable[[], Awaitable[None]], end: Callable[[], Awaitable[None]]
    ) -> Listener:
        listener = Listener(visitor, self._catalogue.page(visitor.label).specs, tell, end)
        self._open.add(listener)
        return listener


async def _try(listener: Listener, step: Callable[[], Awaitable[None]]) -> bool:
    """Whether a stream took it, in time; whatever its trouble is, it is not its neighbours'."""
    with anyio.move_on_after(_PATIENCE):
        try:
            await step()
        except Exception as error:  # boundary: between one client's connection and everybody else's
            _log.warning("a stream of %s failed: %s", listener.visitor.name, type(error).__name__)
            return False
        return True
    _log.warning("a stream of %s takes nothing any more", listener.visitor.name)
    return False
