"""Phrases: the effects of a plan, grouped and told as what will happen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import unquote

from takeback_core.sessions.models import Detail, Group

_VERBS = {
    "delete": ("will be deleted", "will be deleted"),
    "restore": ("will come back", "will come back"),
    "revert": ("will revert", "will revert"),
    "merge": ("will revert, keeping what others changed", "will revert, keeping what others changed"),
}
_STAYS = ("skip", "conflict", "gone")


class _Kind(NamedTuple):
    owner: str
    kind: str
    action: str


def grouped(plan: Any) -> list[Group]:
    """The effects of a plan by table, or other kind of thing, and by what happens to them in the end."""
    things: dict[str, _Kind] = {}
    for effect in _effects(plan):
        if effect.action not in _STAYS:
            thing, kind = _thing(effect.resource, effect.action)
            then = _together(things.pop(thing, None), kind)
            if then is not None:
                things[thing] = then
    counts = Counter(things.values())
    return [
        Group(owner=kind.owner, kind=kind.kind, action=kind.action, count=count, phrase=_phrase(kind, count))
        for kind, count in sorted(counts.items())
    ]


def details(plan: Any) -> list[Detail]:
    """Every effect by itself, in the order in which they happen."""
    return [
        Detail(
            act=step.act,
            resource=effect.resource,
            action=effect.action,
            reason=effect.reason,
            before=effect.now,
            after=effect.then,
        )
        for step in plan.steps
        for effect in step.effects
    ]


def _effects(plan: Any) -> Iterable[Any]:
    return (effect for step in plan.steps for effect in step.effects)


def _thing(resource: str, action: str) -> tuple[str, _Kind]:
    """What a resource is part of, as people count: a row and not each of its columns."""
    owner, _, path = resource.partition(":")
    if owner == "rows" and path.count("/") == 3:
        database, table, key, column = path.split("/")
        happens = "revert" if column and action == "restore" else action
        return f"{database}/{table}/{key}", _Kind(owner, unquote(table), happens)
    if owner != "files":
        return resource, _Kind(owner, f"{owner} item", action)
    return resource.rstrip("/"), _Kind(owner, "folder" if path.endswith("/") else "file", action)


def _together(before: _Kind | None, then: _Kind) -> _Kind | None:
    """What two effects on one thing come to; nothing, where one step brings back what another removes."""
    if before is None or before.action not in ("restore", "delete"):
        return then
    if {before.action, then.action} == {"restore", "delete"}:
        return None
    return before


def _phrase(kind: _Kind, count: int) -> str:
    one, many = _VERBS.get(kind.action, (f"will be changed ({kind.action})",) * 2)
    name = kind.kind.rpartition(".")[2].replace("_", " ")
    return f"1 {name} {one}" if count == 1 else f"{count} {_plural(name)} {many}"


def _plural(name: str) -> str:
    if name.endswith("s"):
        return name
    return f"{name[:-1]}ies" if name.endswith("y") and name[-2:-1] not in "aeiou" else f"{name}s"
