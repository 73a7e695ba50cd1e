"""The MCP door: agents come in here with a token, and see the tools that they reach."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
from anyio.abc import TaskGroup
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from takeback import Check, Context, Host, Module, TakebackError, tool
from takeback_doors.mcp import sessions, web
from takeback_doors.mcp.catalogue import Catalogue
from takeback_doors.mcp.endpoint import PATH, Endpoint
from takeback_doors.mcp.gate import Gate
from takeback_doors.mcp.handlers import Handlers, make_server
from takeback_doors.mcp.listeners import Listeners
from takeback_doors.mcp.models import Nothing, Settings, Status
from takeback_doors.mcp.news import News
from takeback_doors.mcp.pipe import Pipe
from takeback_doors.mcp.visitors import Visitors
from takeback_doors.mcp.web import WebServer

# Calls in flight at a stop have this many seconds to end; the supervisor gives the whole stop five.
_DRAIN = 2.5
# Handshake clients at a time; each holds a few tasks until it has been idle for half an hour.
_SESSIONS = 1024


class McpModule(Module):
    """Serves the Model Context Protocol over HTTP and over the socket of `takeback mcp`."""

    Settings = Settings
    migrations = (sessions.SCHEMA,)

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        settings: Settings = host.settings
        self._settings = settings
        self._visitors = Visitors(host.name, host.ctx)
        catalogue = Catalogue(host.tools)
        self._listeners = Listeners(catalogue, self._visitors, settings.stream_limit)
        self._sessions = sessions.Sessions(host.store, settings.session_gap_minutes * 60)
        self._handlers = Handlers(
            host.doorway(), catalogue, self._sessions, self._listeners, settings.call_timeout
        )
        self._server = make_server(self._handlers)
        self._pipe = Pipe(self._server, self._visitors, settings.body_limit)
        self._news = News(host.events, host.tools, self._listeners, self._pipe)
        self._url = ""
        self._why_no_url = ""

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        """Listen on both ways in, and let calls in flight end before they close."""
        await self._sessions.load()
        async with AsyncExitStack() as stack:
            stack.enter_context(web.discreet_logs())
            own = await stack.enter_async_context(anyio.create_task_group())
            await self._pipe.open(self._socket_path, own)
            server = await self._open_web(stack, own)
            stack.enter_context(self._news.subscribed())
            own.start_soon(self._news.spread)
            try:
                yield
            finally:
                with anyio.CancelScope(shield=True):
                    await self._close(server)
                own.cancel_scope.cancel()

    @tool(effect="read", reach=("person", "modules"))
    async def status(self, ctx: Context, args: Nothing) -> Status:
        """Show where agents find the door and how many are connected."""
        return Status(
            url=self._url,
            problem=self._why_no_url,
            socket=self._socket_path,
            streams=len(self._listeners),
            bridges=len(self._pipe),
        )

    async def checks(self) -> list[Check]:
        """Whether the door listens."""
        return [Check("mcp address", bool(self._url), self._url or self._why_no_url or "not listening")]

    @property
    def _socket_path(self) -> str:
        return str(self.host.home.runtime / "mcp.sock")

    async def _open_web(self, stack: AsyncExitStack, tasks: TaskGroup) -> WebServer | None:
        """Serve HTTP; where the address is taken, the bridge still works and `doctor` says why"""
        try:
            sock = web.bind(self._settings)
        except TakebackError as error:
            self._why_no_url = f"{error.message}. {error.hint}"
            self.host.log.error("No MCP over HTTP: %s", self._why_no_url)
            return None
        stack.callback(sock.close)
        # The gate has looked at Host and Origin already; the SDK's own list matches by prefix.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        manager = StreamableHTTPSessionManager(
            self._server,
            json_response=True,
            security_settings=security,
            max_request_body_size=self._settings.body_limit,
            max_sessions=_SESSIONS,
        )
        await stack.enter_async_context(manager.run())
        endpoint = Endpoint(manager, self._visitors)
        self._listeners.end_session = endpoint.end_session
        gate = Gate(
            endpoint,
            web.hosts_of(sock, self._settings),
            body_limit=self._settings.body_limit,
            body_timeout=self._settings.body_timeout,
        )
        server = WebServer(gate)
        tasks.start_soon(server.run_on, sock)
        await server.ready()
        self._url = web.url_of(sock) + PATH
        return server

    async def _close(self, server: WebServer | None) -> None:
        self._url = ""
        if server is not None:
            server.refuse()
        await self._listeners.end_all()
        await self._handlers.calls.drain(_DRAIN)
        if server is not None:
            server.leave()
        await self._pipe.end_all()
        if server is not None:
            await server.gone()
        try:
            await self._sessions.save()
        except TakebackError as error:
            self.host.log.warning("when each agent was last seen could not be stored: %s", error)
