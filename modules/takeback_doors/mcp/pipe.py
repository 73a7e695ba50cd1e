"""The socket behind `takeback mcp`, for clients that start a program and talk to its pipes."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketListener, SocketStream, TaskGroup
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.server import Server
from mcp.server.runner import serve_dual_era_loop
from mcp.server.stdio import stdio_server

from takeback import RefusedError, TakebackError, UsageError
from takeback.peer import peer_uid
from takeback_doors.mcp.visitors import Visitor, Visitors

_log = logging.getLogger("takeback.mcp")
_GREETING_BYTES = 4096
_GREETING_SECONDS = 10.0
_LAST_ANSWERS = 0.1


class Pipe:
    """Listens on a socket that only the person's own processes can open."""

    def __init__(self, server: Server[Any], visitors: Visitors, limit: int) -> None:
        self._server = server
        self._visitors = visitors
        self._limit = limit
        self._lines: set[_Line] = set()

    def __len__(self) -> int:
        return len(self._lines)

    async def open(self, path: str, tasks: TaskGroup) -> None:
        """Bind, close it to everybody else, and only then listen; serve in `tasks`."""
        listener = await anyio.create_unix_listener(path, mode=0o600)
        tasks.start_soon(self._listen, listener, path)

    async def _listen(self, listener: SocketListener, path: str) -> None:
        async with listener:
            try:
                await listener.serve(self._serve)
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(path)

    async def recheck(self, agent: str) -> None:
        """Close the connections of an agent whose token is no good any more."""
        for line in list(self._lines):
            if line.agent == agent and not await self._visitors.is_good(line.token):
                await line.end()

    async def end_all(self) -> None:
        """Close every connection, as at a stop, once what has just been answered is through."""
        if self._lines:
            await anyio.sleep(_LAST_ANSWERS)
        for line in list(self._lines):
            await line.end()

    async def _serve(self, stream: SocketStream) -> None:
        async with stream:
            wire = _Wire(stream, self._limit)
            try:
                line = await self._greet(stream, wire)
            except TakebackError as error:
                await _say(wire, {"ok": False, "error": error.as_dict()})
                return
            except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead):
                return
            await self._talk(line, wire)

    async def _greet(self, stream: SocketStream, wire: _Wire) -> _Line:
        if peer_uid(stream.extra(SocketAttribute.raw_socket)) != os.geteuid():
            raise RefusedError(
                "mcp.peer", "This socket is for the person who runs takeback", "Use an account of your own."
            )
        with anyio.move_on_after(_GREETING_SECONDS):
            token = _token_in(await wire.line(_GREETING_BYTES))
            visitor = await self._visitors.admit(token)
            return _Line(visitor, self._visitors)
        raise _malformed(f"none came within {_GREETING_SECONDS:g} s")

    async def _talk(self, line: _Line, wire: _Wire) -> None:
        self._lines.add(line)
        try:
            with line.scope:
                await _say(wire, {"ok": True})
                # The SDK asks of these two no more than lines to read and a place to write.
                async with stdio_server(stdin=wire, stdout=wire) as (read, write):  # type: ignore[arg-type]
                    await serve_dual_era_loop(
                        self._server,
                        read,
                        write,
                        lifespan_state=line,
                        init_options=self._server.create_initialization_options(),
                    )
        finally:
            self._lines.discard(line)


class _Line:
    """One bridge, and the agent whose token it showed."""

    def __init__(self, visitor: Visitor, visitors: Visitors) -> None:
        self.agent = visitor.name
        self.token = visitor.token
        self.scope = anyio.CancelScope()
        self._visitors = visitors

    async def visitor(self) -> Visitor:
        """The agent as of now; raises RefusedError `agent.token` once its token has ended."""
        return await self._visitors.admit(self.token)

    async def end(self) -> None:
        """Close the connection."""
        self.scope.cancel()


class _Wire:
    """A socket as lines of text, each at most `limit` bytes; a longer one ends the connection."""

    def __init__(self, stream: SocketStream, limit: int) -> None:
        self._stream = stream
        self._buffered = BufferedByteReceiveStream(stream)
        self._limit = limit

    async def line(self, limit: int) -> bytes:
        """The next line, without its end."""
        try:
            return await self._buffered.receive_until(b"\n", limit)
        except anyio.DelimiterNotFound:
            raise _malformed(f"it is longer than {limit} bytes") from None

    def __aiter__(self) -> _Wire:
        return self

    async def __anext__(self) -> str:
        try:
            return (await self._buffered.receive_until(b"\n", self._limit)).decode("utf-8", "replace")
        except anyio.DelimiterNotFound:
            _log.warning("a bridge sent a message of more than %d bytes and is closed", self._limit)
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError):
            pass
        raise StopAsyncIteration

    async def write(self, text: str) -> None:
        """Send text."""
        try:
            await self._stream.send(text.encode())
        except anyio.BrokenResourceError:
            raise anyio.ClosedResourceError from None

    async def flush(self) -> None:
        """Nothing is held back."""


async def _say(wire: _Wire, shape: dict[str, Any]) -> None:
    try:
        await wire.write(json.dumps(shape) + "\n")
    except anyio.ClosedResourceError:
        return


def _token_in(line: bytes) -> str:
    try:
        greeting = json.loads(line)
    except (ValueError, RecursionError):
        greeting = None
    token = greeting.get("token") if isinstance(greeting, dict) else None
    if not isinstance(token, str):
        raise _malformed('it must be {"token": "..."}')
    return token


def _malformed(why: str) -> TakebackError:
    return UsageError(
        "mcp.greeting",
        f"The first line of the connection can't be used: {why}",
        "Connect through `takeback mcp`.",
    )
