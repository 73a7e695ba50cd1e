"""Who acted, and who may take it back."""

from __future__ import annotations

import anyio

from takeback.callers import Caller
from takeback.context import Context
from takeback.errors import NotFoundError, TakebackError
from takeback_core.undo.rows import Row

# core/sessions has no acts of its own: it asks for whoever asked it, and for no more.
_PASSES_ON = frozenset({"module:sessions"})


class Actors:
    """Tells the assistant from other agents, looking the names up once in `agents.list`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._assistants: frozenset[str] | None = None
        self._changes = 0
        self._looking = anyio.Lock()

    def forget(self) -> None:
        """Look again next time: the agents have changed."""
        self._assistants = None
        self._changes += 1

    async def kind(self, caller: Caller) -> str:
        """The actor kind of a label; without the agents module every agent is `agent`."""
        if caller.kind != "agent":
            return caller.kind
        known = self._assistants
        if known is None:
            known = await self._learn()
        return "assistant" if caller.name in known else "agent"

    async def _learn(self) -> frozenset[str]:
        async with self._looking:
            while self._assistants is None:
                changes = self._changes
                found = await self._look_up()
                if changes == self._changes:  # else the answer may be from before the change
                    self._assistants = found
            return self._assistants

    async def _look_up(self) -> frozenset[str]:
        try:
            listed = await self._ctx.call("agents.list")
        except TakebackError as error:
            if error.code in ("tool.unknown", "module.off"):
                return frozenset()
            raise
        return frozenset(agent.name for agent in listed.agents if agent.assistant)


def may_undo(ctx: Context, row: Row) -> bool:
    """Whether everybody in the chain of a call may take a row back.

    The person any row, an agent its own acts by name over any door, a module its own rows.
    """
    actor = Caller.parse(row.actor)
    return all(_may(caller, actor) for caller in _asking(ctx))


def _asking(ctx: Context) -> list[Caller]:
    """Everybody in the chain of a call but those who only pass on what they were asked."""
    first, *others = ctx.chain
    return [Caller.parse(label) for label in (first, *(one for one in others if one not in _PASSES_ON))]


def asker_of(ctx: Context) -> str | None:
    """The module that passes on what it was asked, and has more of its own to change with it."""
    return Caller.parse(ctx.caller).name if ctx.caller in _PASSES_ON else None


def _may(caller: Caller, actor: Caller) -> bool:
    return caller.kind == "person" or caller.same_actor(actor)


def standing(ctx: Context) -> tuple[object, ...]:
    """Who asks and within which scope: the same for calls that may do the same and see the same.

    The person is one on all devices, and an agent over all doors.
    """
    callers = _asking(ctx)
    return *((one.kind, None if one.kind == "person" else one.name) for one in callers), ctx.scope


def unknown_act(row_id: str) -> NotFoundError:
    """The same words for a row that isn't there and for somebody else's."""
    return NotFoundError(
        "undo.unknown_act",
        f"There is no act {row_id:.64} of yours",
        "`takeback log` lists the acts with their ids.",
    )


def limits(ctx: Context) -> tuple[str, list[str]]:
    """The SQL condition that keeps a caller to the rows it may see."""
    conditions: list[str] = []
    values: list[str] = []
    for caller in _asking(ctx):
        if caller.kind == "agent":
            conditions.append("a.agent = ?")
            values.append(caller.name or "")
        elif caller.kind == "module":
            conditions.append("a.actor = ?")
            values.append(caller.label)
    return " AND ".join(conditions) or "1", values
