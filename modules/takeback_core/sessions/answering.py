"""Answers to an edit: what was taken back, what was left, and what there is to know of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from takeback_core.sessions.models import Detail, Edited

NOTHING_LEFT = "Nothing that was done from this message on is left to roll back."
ALL_LEFT = (
    "Everything that was done from this message on was left as it is, and can't be rolled back any more."
)
_DROPPED = "What was done from this message on stays, and can't be rolled back any more."


def note(roll_back: bool, *, standing: int) -> str:
    """What to know of an edit that takes nothing back."""
    if roll_back:
        return NOTHING_LEFT
    return _DROPPED if standing else ""


def edited(turn: str, undo: Any, note: str) -> Edited:
    """The answer to an edit with the undo that took acts back, if one did."""
    if undo.act is None:
        return Edited(turn=turn, note=note)
    return Edited(
        turn=turn,
        rolled_back=sum(result.state == "undone" for result in undo.results),
        undo=undo.act,
        note=note,
        left=[] if undo.plan is None else left_out(undo.plan, undo.results),
    )


def left_out(plan: Any, results: Sequence[Any]) -> list[Detail]:
    """What of a plan was not taken back, and why: each resource, or an act that names none."""
    whole = {result.id for result in results if result.state == "undone"}
    left: list[Detail] = []
    for step in plan.steps:
        if step.act in whole:
            continue
        against = [one for one in step.effects if one.action in ("conflict", "gone")]
        told = [(one.resource, one.action, one.reason) for one in against or step.effects]
        if step.part:
            told = [(one.resource, one.why, one.reason) for one in step.stays]
        left += [
            Detail(act=step.act, resource=resource, action=action, reason=reason or step.reason)
            for resource, action, reason in told or [("", step.status, step.reason)]
        ]
    return left
