"""Visitor: who is at the other end of a connection, the person or a process that an agent has started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from takeback.context import Context, Scope
from takeback.errors import NotFoundError, RefusedError, TakebackError
from takeback.module import Host

# What is asked for one act by its id; and what is chosen by a session, among others.
_BY_ID = frozenset({"undo.preview", "undo.redo", "undo.run", "undo.settle", "undo.show", "undo.pin"})
_BY_SESSION = frozenset({"undo.list", "undo.preview", "undo.rewind"})
_NOT_THERE = ("tool.unknown", "module.off")


@dataclass(frozen=True, slots=True)
class Visitor:
    """An agent whose process the client descends from, in one of its sessions; the person without one."""

    agent: str = ""
    session: str = ""
    turn: str | None = None
    roots: tuple[str, ...] = ()

    def context(self, host: Host, request: dict[str, Any]) -> Context:
        """What a request is called with: an agent stays in its session, and is never there as the person."""
        door = host.doorway()
        if not self.agent:
            return door.person(
                present=request["present"], dry_run=request["dry_run"], session=request["session"]
            )
        scope = Scope(roots=self.roots)
        ctx = door.agent(self.agent, session=self.session, turn=self.turn, scope=scope)
        return ctx._replace(dry_run=request["dry_run"])

    async def narrow(self, host: Host, ctx: Context, request: dict[str, Any]) -> None:
        """Keeps an agent's request to its own session; raises NotFoundError `undo.unknown_act`."""
        if not self.agent:
            return
        tool, args = request["tool"], request["args"]
        if tool in _BY_ID and isinstance(id := args.get("id"), str):
            shown = await host.doorway().call(ctx._replace(dry_run=False), "undo.show", {"id": id})
            if shown.act.session != self.session:
                raise _unknown(id)
            # What comes along may be of another session.
            args.pop("dependents", None)
        elif tool in _BY_SESSION:
            args["session"] = self.session

    def require_person(self) -> None:
        """Raises RefusedError `peer.agent` for what is for the person alone and is no tool."""
        if self.agent:
            raise RefusedError(
                "peer.agent",
                f"This process was started by {self.agent}, and that is for the person alone",
                "Run it in a terminal of your own.",
            )


PERSON = Visitor()


async def visitor_of(host: Host, pid: int) -> Visitor:
    """Who a process acts for: an agent that is known by its hooks, else the person."""
    try:
        found = await host.ctx.call("hook.descent", pid=pid)
    except TakebackError as error:
        if error.code not in _NOT_THERE:
            host.log.warning("it could not be told whether an agent started process %d: %s", pid, error.code)
        return PERSON
    if not found.agent:
        return PERSON
    return Visitor(found.agent, found.session, found.turn, tuple(found.roots))


def _unknown(id: str) -> NotFoundError:
    return NotFoundError(
        "undo.unknown_act",
        f"There is no act {id:.64} of this session",
        "An agent takes back what it did in its own session; the person takes back anything.",
    )
