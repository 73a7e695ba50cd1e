"""Dressing: what putting back an owner or a folder's mode would mean, now that others may have set it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from takeback_acts.files.attributes import may_change, may_give
from takeback_acts.files.states import State
from takeback_acts.files.trees import Seen

if TYPE_CHECKING:
    from takeback_acts.files.judging import Case

_OWNER = ("owner", "group")
_GONE = "it was deleted since"
_CHANGED = "its owner or its mode was changed since"


def decide(case: Case, *, force: bool) -> None:
    """Sets the case's action, reason and what is wanted."""
    before, after, now = case.back.before, case.back.after, case.now.state
    if now.own_version == before.own_version:
        case.action, case.reason, case.want = "skip", "unchanged", case.now
    elif now.kind != after.kind:
        case.action = "conflict"
        case.reason = _GONE if now.kind == "absent" else "something else was put there since"
    elif now.own_version == after.own_version:
        case.want = Seen(before)
    elif (merged := _merged(before, after, now)) is not None:
        case.want = Seen(merged)
        case.action, case.reason = "merge", "changed since; only this act's change is taken back"
    elif force:
        case.want, case.reason = Seen(before), f"overwritten though {_CHANGED}"
    else:
        case.action, case.reason = "conflict", _CHANGED
    if case.action in ("restore", "merge"):
        _require_allowed(case)


def _merged(before: State, after: State, now: State) -> State | None:
    """What is now with only the act's own change taken back; None where others changed the same since."""
    wanted = now
    for fields in (_OWNER, ("mode",)):
        was, left, there = ([getattr(state, one) for one in fields] for state in (before, after, now))
        if there == left:
            wanted = wanted.model_copy(update=dict(zip(fields, was, strict=True)))
        elif left != was and there != was:
            return None
    return wanted


def _require_allowed(case: Case) -> None:
    """What the system would refuse is a conflict from the start."""
    now, want = case.now.state, case.want.state
    if want.own_version == now.own_version:
        case.action, case.reason = "skip", "unchanged"
    elif not may_give(now, want):
        case.action, case.reason = "conflict", "only root can give it back to its owner"
    elif not may_change(now):
        case.action, case.reason = "conflict", "only its owner can give it back its mode"
