"""The small client for modules that act: intent before the effect, the truth after it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio

from takeback.context import Context
from takeback.errors import TakebackError
from takeback_core.undo.early import hearing

TouchedTriple = tuple[str, str, str]


class BegunAct:
    """An act whose intent is durable; `confirm_with` corrects what was foreseen before it is confirmed."""

    def __init__(self, act_id: str) -> None:
        self.id = act_id
        self.reverted = False
        self._facts: dict[str, Any] = {}

    def nothing_is_left(self) -> None:
        """Say, before raising, that the effect did not happen or was taken back by the module itself.

        Without it the resources are looked at, and a stranger's change to them hides what happened.
        """
        self.reverted = True

    def confirm_with(
        self,
        *,
        summary: str | None = None,
        inverse_input: Mapping[str, Any] | None = None,
        touched: Iterable[TouchedTriple] | None = None,
        blobs: Iterable[str] | None = None,
    ) -> None:
        """Note what really happened; it replaces what `act` was opened with."""
        if summary is not None:
            self._facts["summary"] = summary
        if inverse_input is not None:
            self._facts["inverse_input"] = dict(inverse_input)
        if touched is not None:
            self._facts["touched"] = _touched(touched)
        if blobs is not None:
            self._facts["blobs"] = list(blobs)

    @property
    def facts(self) -> dict[str, Any]:
        """What `undo.confirm` is called with."""
        return {"id": self.id, **self._facts}


@asynccontextmanager
async def act(
    ctx: Context,
    *,
    tool: str,
    summary: str,
    input: Mapping[str, Any] | None = None,
    inverse: tuple[str, Mapping[str, Any]] | None = None,
    touched: Iterable[TouchedTriple] = (),
    why: Iterable[str] = (),
    blobs: Iterable[str] = (),
    final_reason: str | None = None,
) -> AsyncIterator[BegunAct]:
    """Open an act around its effect: `async with act(ctx, ...)`.

    `touched` holds (resource, before, after). The row is durable when the body begins; it is confirmed
    when the body ends, and settled by looking at the resources when the body raises. Raises what
    `undo.begin` raises, before the body, so that a refused inverse means that nothing is done.
    """
    opened = await begin(
        ctx,
        tool=tool,
        summary=summary,
        input=input,
        inverse=inverse,
        touched=touched,
        why=why,
        blobs=blobs,
        final_reason=final_reason,
    )
    try:
        yield opened
    except BaseException:
        await abandon(ctx, opened)
        raise
    await confirm(ctx, opened)


async def begin(
    ctx: Context,
    *,
    tool: str,
    summary: str,
    input: Mapping[str, Any] | None = None,
    inverse: tuple[str, Mapping[str, Any]] | None = None,
    touched: Iterable[TouchedTriple] = (),
    why: Iterable[str] = (),
    blobs: Iterable[str] = (),
    final_reason: str | None = None,
    durable: Callable[[], None] | None = None,
) -> BegunAct:
    """Begin an act whose effect does not fit into the body of `act`; durable when it returns.

    It must be confirmed or abandoned. Acts of one owner stand in the order in which they were begun.
    `durable` is called on the log's own thread the moment the intent is, also for who is cancelled then: for
    an effect that waits on another thread. It must be quick and raise nothing.
    """
    given = {
        "tool": tool,
        "summary": summary,
        "input": dict(input or {}),
        "inverse_tool": inverse[0] if inverse else None,
        "inverse_input": dict(inverse[1]) if inverse else {},
        "touched": _touched(touched),
        "why": list(why),
        "blobs": list(blobs),
        "final_reason": final_reason,
    }
    with hearing(durable):
        begun = await ctx.call("undo.begin", given)
    return BegunAct(begun.id)


async def confirm(ctx: Context, opened: BegunAct) -> None:
    """Confirm a begun act, with what it was corrected by; also when cancelled, for its effect stands.

    Raises what `undo.confirm` raises for facts that are not the module's to state.
    """
    with anyio.CancelScope(shield=True):
        await ctx.call("undo.confirm", opened.facts)


async def abandon(ctx: Context, opened: BegunAct) -> None:
    """Settle a begun act whose effect failed, also when cancelled; raises nothing.

    What went wrong first is what the caller must hear: a row that can't be settled now is settled later.
    """
    with anyio.CancelScope(shield=True), suppress(TakebackError):
        await ctx.call("undo.abandon", {"id": opened.id, "certain": opened.reverted})


def _touched(triples: Iterable[TouchedTriple]) -> list[dict[str, str]]:
    return [{"resource": resource, "before": before, "after": after} for resource, before, after in triples]
