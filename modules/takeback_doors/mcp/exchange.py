"""An exchange: one request's body, bounded in size and time, and a call that ends with whoever made it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from anyio import CancelScope, current_time

from takeback.errors import TakebackError, UsageError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# Seconds until somebody listens for a caller that hangs up: most calls are over by then, and cost no task.
_SOON = 0.05


class RefusedRequest(Exception):  # noqa: N818 - an answer, not a failure
    """A request that goes no further, with the HTTP status it gets."""

    def __init__(self, status: int, error: TakebackError) -> None:
        super().__init__(error.code)
        self.status = status
        self.error = error


class Exchange:
    """A request on its way through an application."""

    __slots__ = ("_given", "_limit", "_listening", "_receive", "_scope", "_send", "_timeout", "_timer")

    def __init__(self, receive: Receive, send: Send, limit: int, timeout: float) -> None:
        self._receive = receive
        self._send = send
        self._limit = limit
        self._timeout = timeout
        self._given = False
        self._timer: asyncio.TimerHandle | None = None
        self._listening: asyncio.Task[None] | None = None

    async def serve(self, app: App, scope: Scope) -> None:
        """Have the application answer; a POST whose caller hangs up is cancelled.

        Raises RefusedRequest when the body is too large or too slow.
        """
        if scope["method"] != "POST":  # the streams among these look after themselves
            await app(scope, self._body, self._send)
            return
        with CancelScope(deadline=current_time() + self._timeout) as self._scope:
            try:
                await app(scope, self._posted, self._answer)
            finally:
                self._stop_listening()
        if self._scope.cancelled_caught and not self._given:
            raise RefusedRequest(408, _slow(self._timeout))

    async def _posted(self) -> Message:
        again = self._given
        message = await self._body()
        if not again:
            self._scope.deadline = math.inf
            self._timer = asyncio.get_running_loop().call_later(_SOON, self._listen)
        return message

    async def _body(self) -> Message:
        """The body, in one piece."""
        if self._given:
            return await self._receive()
        message = await self._receive()
        parts, size = [], 0
        while message["type"] == "http.request":
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._limit:
                raise too_large(self._limit)
            if not message.get("more_body"):
                self._given = True
                return {"type": "http.request", "body": b"".join(parts), "more_body": False}
            message = await self._receive()
        return message

    async def _answer(self, message: Message) -> None:
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self._stop_listening()  # after the answer there is no telling a caller that hangs up
        await self._send(message)

    def _listen(self) -> None:
        self._listening = asyncio.ensure_future(self._end_with_caller())

    async def _end_with_caller(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._scope.cancel()

    def _stop_listening(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._listening is not None:
            self._listening.cancel()


def too_large(limit: int) -> RefusedRequest:
    """The refusal of a body over `limit` bytes."""
    return RefusedRequest(
        413,
        UsageError(
            "http.too_large",
            f"The request's body has more than {limit} bytes",
            "Send the content in parts, or raise body_limit in the [mcp] settings.",
        ),
    )


def _slow(seconds: float) -> TakebackError:
    return TakebackError(
        "http.slow",
        f"The request's body did not arrive within {seconds:g} s",
        "Send the body at once.",
        retryable=True,
    )
