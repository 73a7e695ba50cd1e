"""Lines of JSON on an asynchronous stream."""

from __future__ import annotations

import anyio
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream
from anyio.abc import ByteStream

from takeback_doors.cli.wire import REQUEST_LIMIT, too_large


class Lines:
    """The lines that a client sends, each of at most REQUEST_LIMIT bytes, and what is sent back.

    One task runs `pump` as long as the stream lives, and nobody else reads: to stop waiting for a line
    must not disturb a read that the event loop has begun.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._waiting = bytearray()
        self._news = anyio.Event()
        self._room = anyio.Event()
        self._gone = anyio.Event()

    async def pump(self) -> None:
        """Take in what the client sends, until it hangs up or the stream is closed."""
        try:
            while True:
                self._waiting += await self._stream.receive()
                self._news.set()
                if len(self._waiting) > REQUEST_LIMIT:
                    self._room = anyio.Event()
                    await self._room.wait()
        except (EndOfStream, BrokenResourceError, ClosedResourceError):
            self._gone.set()
            self._news.set()

    async def next(self) -> bytes | None:
        """The next line without its newline; None when the client has hung up.

        Raises UsageError `request.too_large`, after which the stream is of no more use.
        """
        searched = 0
        while (end := self._waiting.find(b"\n", searched)) < 0:
            searched = len(self._waiting)
            if searched > REQUEST_LIMIT:
                raise too_large("more")
            if self._gone.is_set():
                return None
            self._news = anyio.Event()
            await self._news.wait()
        line = bytes(self._waiting[:end])
        del self._waiting[: end + 1]
        if len(self._waiting) <= REQUEST_LIMIT:
            self._room.set()
        return line

    async def gone(self) -> None:
        """Return when the client has hung up."""
        await self._gone.wait()

    async def send(self, line: bytes) -> bool:
        """Send one whole line; False when nobody is there any more."""
        try:
            await self._stream.send(line)
        except (BrokenResourceError, ClosedResourceError):
            return False
        return True

    async def close(self) -> None:
        """Hang up, which ends `pump` as well."""
        self._room.set()
        await self._stream.aclose()
