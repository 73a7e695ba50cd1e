"""Lines of JSON on an asynchronous stream."""

from __future__ import annotations

from anyio import BrokenResourceError, ClosedResourceError, EndOfStream
from anyio.abc import ByteStream

from takeback_doors.cli.wire import REQUEST_LIMIT, too_large


class Lines:
    """The lines that a client sends, each of at most REQUEST_LIMIT bytes, and what is sent back."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._waiting = bytearray()

    async def next(self) -> bytes | None:
        """The next line without its newline; None when the client has hung up.

        Raises UsageError `request.too_large`, after which the stream is of no more use.
        """
        searched = 0
        while (end := self._waiting.find(b"\n", searched)) < 0:
            searched = len(self._waiting)
            if searched > REQUEST_LIMIT:
                raise too_large("more")
            if not await self._more():
                return None
        line = bytes(self._waiting[:end])
        del self._waiting[: end + 1]
        return line

    async def gone(self) -> None:
        """Return when the client has hung up; what it sends meanwhile is kept for `next`."""
        while len(self._waiting) <= REQUEST_LIMIT:
            if not await self._more():
                return

    async def send(self, line: bytes) -> bool:
        """Send one whole line; False when nobody is there any more."""
        try:
            await self._stream.send(line)
        except (BrokenResourceError, ClosedResourceError):
            return False
        return True

    async def _more(self) -> bool:
        try:
            self._waiting += await self._stream.receive()
        except (EndOfStream, BrokenResourceError, ClosedResourceError):
            return False
        return True
