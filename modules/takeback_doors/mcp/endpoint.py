"""The route /mcp: a token becomes a visitor, and the SDK serves the request."""

from __future__ import annotations

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from takeback import NotFoundError, RefusedError, TakebackError
from takeback_doors.mcp.exchange import Message, Receive, Scope, Send
from takeback_doors.mcp.gate import answer
from takeback_doors.mcp.visitors import KEY, Visitor, Visitors, bearer

PATH = "/mcp"
_CHALLENGE = (b"www-authenticate", b'Bearer realm="takeback", error="invalid_token"')


class Endpoint:
    """The ASGI application behind the gate."""

    def __init__(self, manager: StreamableHTTPSessionManager, visitors: Visitors) -> None:
        self._manager = manager
        self._visitors = visitors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request whose head the gate has checked."""
        if scope["path"] != PATH:
            await answer(send, 404, _no_such_page())
            return
        token = bearer(scope["headers"])
        if token is None:
            await answer(send, 401, _no_token(), _CHALLENGE)
            return
        try:
            visitor = await self._visitors.admit(token)
        except RefusedError as error:
            await answer(send, 401, error, _CHALLENGE)
        except TakebackError as error:
            await answer(send, 503, error)
        else:
            scope[KEY] = visitor
            scope["user"] = self._visitors.user(visitor)
            await self._manager.handle_request(scope, receive, send)

    async def end_session(self, session: str, visitor: Visitor) -> None:
        """End a handshake client's session as its own DELETE would, so that its open stream closes."""
        scope: Scope = {
            "type": "http",
            "method": "DELETE",
            "path": PATH,
            "query_string": b"",
            "headers": [(b"mcp-session-id", session.encode("ascii"))],
            KEY: visitor,
            "user": self._visitors.user(visitor),
        }
        await self._manager.handle_request(scope, _nothing_more, _to_nobody)


async def _nothing_more() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _to_nobody(message: Message) -> None:
    pass


def _no_such_page() -> TakebackError:
    return NotFoundError("http.path", "There is nothing at this address", f"MCP is at {PATH}.")


def _no_token() -> TakebackError:
    return RefusedError(
        "agent.no_token",
        "The request carries no token",
        "Send `Authorization: Bearer TOKEN`; the person gets one from `takeback agents add NAME`.",
    )
