"""Who is calling: from a token to an agent, on each request anew."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from takeback import Caller, Context, RefusedError, Scope, TakebackError

KEY = "takeback.visitor"


@dataclass(frozen=True, slots=True)
class Visitor:
    """An agent that has shown its token, and what it may touch at this moment."""

    name: str
    label: str
    scope: Scope
    token: str = field(repr=False)


class Visitors:
    """Recognises agents by asking the agents module; it keeps no copy of what that knows."""

    def __init__(self, door: str, ctx: Context) -> None:
        self._door = door
        self._ctx = ctx
        self._users: dict[str, AuthenticatedUser] = {}

    async def admit(self, token: str) -> Visitor:
        """The agent whose token this is; raises RefusedError `agent.token`, or `agent.unavailable`."""
        try:
            known = await self._ctx.call("agents.authenticate", {"token": token})
        except RefusedError:
            raise
        except TakebackError as error:
            if error.kind == "usage":
                raise _not_accepted() from None
            raise _unavailable() from error
        label = Caller.agent(self._door, known.name).label
        scope = Scope(roots=tuple(known.roots), tables=tuple(known.tables))
        return Visitor(known.name, label, scope, token)

    async def is_good(self, token: str) -> bool:
        """Whether a token would be accepted now."""
        try:
            await self.admit(token)
        except TakebackError:
            return False
        return True

    def user(self, visitor: Visitor) -> AuthenticatedUser:
        """The visitor as the SDK knows it, which ties a session to the agent that opened it."""
        user = self._users.get(visitor.label)
        if user is None:
            # The SDK keeps this object; the token itself has no business in it.
            access = AccessToken(token="", client_id=visitor.label, scopes=[], subject=visitor.label)
            user = self._users[visitor.label] = AuthenticatedUser(access)
        return user


def bearer(headers: list[tuple[bytes, bytes]]) -> str | None:
    """The token of the one Authorization header; None where there is none or more than one."""
    found = [value for name, value in headers if name == b"authorization"]
    if len(found) != 1 or found[0][:7].lower() != b"bearer ":
        return None
    return found[0][7:].strip().decode("latin-1") or None


def of_request(request: Any) -> Visitor:
    """The visitor whom the endpoint noted on a request."""
    visitor: Visitor = request.scope[KEY]
    return visitor


def _not_accepted() -> TakebackError:
    return RefusedError(
        "agent.token",
        "The token is not accepted",
        "Ask the person for a new one: `takeback agents rotate NAME`.",
    )


def _unavailable() -> TakebackError:
    return TakebackError(
        "agent.unavailable",
        "No agent can come in while the agents module is off",
        "Ask the person to look at `takeback modules`.",
        retryable=True,
    )
