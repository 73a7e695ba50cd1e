"""The protocol's requests: list tools, call one, listen for changes."""

from __future__ import annotations

from typing import Any, Protocol

from mcp.server import NotificationOptions, Server, ServerRequestContext
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    CallToolRequestParams,
    NotificationParams,
    PaginatedRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)

from takeback import TakebackError, __version__
from takeback.gate import Gate
from takeback.module import Doorway
from takeback_doors.mcp import results
from takeback_doors.mcp.catalogue import Catalogue
from takeback_doors.mcp.listeners import Listeners
from takeback_doors.mcp.sessions import Sessions
from takeback_doors.mcp.visitors import Visitor, of_request

_Request = ServerRequestContext[Any, Any]


class Line(Protocol):
    """A connection that knows whose it is; the lifespan context of what is served over it."""

    async def visitor(self) -> Visitor:
        """The agent at the other end; raises RefusedError `agent.token` when its token has ended."""

    async def end(self) -> None:
        """Close the connection."""


class Handlers:
    """Answers requests for whichever agent made them; `calls` counts the tool calls in flight."""

    def __init__(
        self, door: Doorway, catalogue: Catalogue, sessions: Sessions, listeners: Listeners, timeout: float
    ) -> None:
        self._door = door
        self._catalogue = catalogue
        self._sessions = sessions
        self._listeners = listeners
        self._timeout = timeout
        self.calls = Gate(open=True)

    async def list_tools(self, ctx: _Request, params: PaginatedRequestParams) -> dict[str, Any]:
        """Answer the tools this agent reaches, sorted by name."""
        visitor = await _visitor(ctx)
        return self._catalogue.page(visitor.label).answer

    async def call_tool(self, ctx: _Request, params: CallToolRequestParams) -> dict[str, Any]:
        """Call a tool under the agent's label, within its scope and the door's time limit."""
        visitor = await _visitor(ctx)
        meta = ctx.params.get("_meta") if ctx.params else None
        session, turn = self._sessions.place(visitor.name, meta)
        context = self._door.agent(visitor.name, session=session, turn=turn, scope=visitor.scope)
        name = params.name
        self.calls.enter()
        try:
            output = await self._door.call(context, name, params.arguments or {}, timeout=self._timeout)
        except TakebackError as error:
            if error.code == "tool.unknown" and name not in self._catalogue.page(visitor.label).names:
                raise _unknown(name) from None
            return results.failure(name, error)
        finally:
            self.calls.leave()
        return results.success(name, output)

    async def listen(
        self, ctx: _Request, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Keep a stream open and say on it when this agent's list of tools changes."""
        return await self._listeners.serve(await _visitor(ctx), ctx, params)

    async def initialized(self, ctx: _Request, params: NotificationParams) -> None:
        """Remember a handshake client, which hears of changes without asking."""
        self._listeners.remember(await _visitor(ctx), ctx)


class TakebackServer(Server[Any]):
    """The SDK's server, with `listChanged` said to handshake clients too; over HTTP it asks for defaults."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """What the server says of itself at a handshake."""
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


def make_server(handlers: Handlers) -> Server[Any]:
    """The MCP server that answers with these handlers."""
    server = TakebackServer(
        "takeback",
        version=__version__,
        title="takeback",
        instructions="What you do with these tools the person can take back: one act, or a whole session.",
        # No schema of ours binds arguments to headers, and a look by name alone would tell
        # tools that are out of reach apart from those that are not there.
        get_tool_input_schema=lambda name: None,
    )
    server.add_request_handler("tools/list", PaginatedRequestParams, handlers.list_tools)
    server.add_request_handler("tools/call", CallToolRequestParams, handlers.call_tool)
    server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, handlers.listen)
    server.add_notification_handler("notifications/initialized", NotificationParams, handlers.initialized)
    # Tracing spans cost more than a whole call of the kernel; the audit has a row of each call.
    server.middleware.clear()
    return server


async def _visitor(ctx: _Request) -> Visitor:
    if ctx.request is not None:
        return of_request(ctx.request)
    line: Line = ctx.lifespan_context
    try:
        return await line.visitor()
    except TakebackError as error:
        raise MCPError(INVALID_REQUEST, error.message, {"hint": error.hint}) from None


def _unknown(name: str) -> MCPError:
    return MCPError(INVALID_PARAMS, f"Unknown tool: {name:.200}")
