"""The HTTP server: a socket of our own making, and uvicorn without its process manners."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import uvicorn

from takeback import TakebackError
from takeback_doors.mcp.exchange import App
from takeback_doors.mcp.models import Settings

# Who listens everywhere is found here as well.
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - not bound to, looked up
# Clients drop idle connections after 5 s or so; a server that does it in the same moment breaks a request.
_KEEP_ALIVE = 75
# What uvicorn still waits for after the calls in flight have had their time.
_GRACE = 1


def bind(settings: Settings) -> socket.socket:
    """A bound socket that nobody can connect to yet; raises TakebackError `mcp.address`."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Named as TCP, or asyncio would not switch off Nagle's algorithm: 40 ms on every answer of two writes.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((settings.host, settings.port))
    except OSError as error:
        sock.close()
        raise TakebackError(
            "mcp.address",
            f"Can't listen on {settings.host} port {settings.port}: {error.strerror}",
            "Set another port under [mcp] in takeback.toml, or TAKEBACK_MCP__PORT.",
        ) from error
    return sock


def hosts_of(sock: socket.socket, settings: Settings) -> frozenset[bytes]:
    """The Host headers to answer to: this address, loopback by its names, and what the settings add."""
    port = sock.getsockname()[1]
    names = {f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", _address(sock), *settings.hosts}
    if port == 80:
        names |= {"127.0.0.1", "localhost", "[::1]"}
    return frozenset(name.lower().encode("latin-1") for name in names)


def url_of(sock: socket.socket) -> str:
    """The address to give to a client on this machine."""
    return f"http://{_address(sock)}"


def _address(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    host = _LOOPBACK.get(host, host)
    return f"{f'[{host}]' if ':' in host else host}:{port}"


class WebServer(uvicorn.Server):
    """uvicorn on an already bound socket, as one task among others of the daemon.

    It leaves the process's signals alone, wakes up for requests only, and says nothing of them in the log.
    """

    def __init__(self, app: App) -> None:
        config = uvicorn.Config(
            app,
            loop="none",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=_GRACE,
        )
        super().__init__(config)
        self._ready = anyio.Event()
        self._leave = anyio.Event()
        self._gone = anyio.Event()

    async def run_on(self, sock: socket.socket) -> None:
        """Serve until `leave`."""
        try:
            await self.serve(sockets=[sock])
        finally:
            self._gone.set()

    async def ready(self) -> None:
        """Return once connections are taken."""
        await self._ready.wait()

    def refuse(self) -> None:
        """Take no more connections."""
        for listening in self.servers:
            listening.close()

    def leave(self) -> None:
        """Close the connections, those in use soon after."""
        self._leave.set()

    async def gone(self) -> None:
        """Return when all is closed."""
        await self._gone.wait()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; uvicorn calls this."""
        await super().startup(sockets)
        self._ready.set()

    async def main_loop(self) -> None:
        """Wait for the end; uvicorn's own loop wakes ten times a second for what is switched off here."""
        await self.on_tick(0)
        await self._leave.wait()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the daemon."""
        yield


class _HungUp(logging.Filter):
    """Drops the traceback that the SDK causes when a client leaves in the middle of a call."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is worth keeping."""
        return not (record.exc_info and _is_hang_up(record.exc_info[1]))


def _is_hang_up(error: BaseException | None) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_is_hang_up(inner) for inner in error.exceptions)
    return isinstance(error, RuntimeError) and "after response already completed" in str(error)


@contextmanager
def discreet_logs() -> Iterator[None]:
    """Keep the log free of clients that hung up, and of what libraries quote of a message while debugging."""
    dropped = _HungUp()
    hanging = [logging.getLogger(name) for name in ("uvicorn.error", "mcp.server.streamable_http")]
    quoting = [logging.getLogger(name) for name in ("mcp.server", "mcp.shared", "sse_starlette")]
    levels = [logger.level for logger in quoting]
    for logger in hanging:
        logger.addFilter(dropped)
    for logger in quoting:
        logger.setLevel(max(logger.level, logging.INFO))
    try:
        yield
    finally:
        for logger in hanging:
            logger.removeFilter(dropped)
        for logger, level in zip(quoting, levels, strict=True):
            logger.setLevel(level)
