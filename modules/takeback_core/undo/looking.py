"""Looking at resources: asking their owners for the versions they have now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from takeback.context import Context
from takeback.errors import TakebackError
from takeback.joint import Joint
from takeback_core.undo import resources
from takeback_core.undo.models import State, Touched


async def versions(
    ctx: Context,
    names: Iterable[str],
    rehearsal: dict[str, Any] | None = None,
    joint: Joint | None = None,
) -> dict[str, str] | None:
    """The version of each resource now, or None when an owner that could tell is not running.

    Resources of an owner without a `versions` tool are left out. Raises what the owner raises, such as
    `scope.outside` when the caller's scope of today does not hold a resource.
    """
    found: dict[str, str] = {}
    by_owner: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        by_owner.setdefault(resources.owner(name), []).append(name)
    for owner, owned in by_owner.items():
        try:
            answer = await ctx.call(
                f"{owner}.versions", {"resources": owned}, rehearsal_=rehearsal, joint_=joint
            )
        except TakebackError as error:
            if error.code not in ("module.off", "tool.unknown"):
                raise
            if error.code == "module.off" or not runs(ctx, owner):
                return None
        else:
            found.update(answer.versions)
    return found


def runs(ctx: Context, module: str) -> bool:
    """Whether a module is running."""
    return any(spec.module == module for spec in ctx.router.specs())


def verdict(touched: list[Touched], now: dict[str, str] | None) -> State:
    """What a row's resources say of a begun act: `done`, `abandoned`, or `unknown` when they can't tell."""
    if not touched or now is None or any(item.resource not in now for item in touched):
        return "unknown"
    if all(now[item.resource] == item.before for item in touched):
        return "abandoned"
    if all(now[item.resource] == item.after for item in touched):
        return "done"
    return "unknown"
