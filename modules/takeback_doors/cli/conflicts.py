"""What stands against a step of a plan: on what, who did it and when, as far as anybody knows."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from typing import Any

from takeback import moments
from takeback_doors.cli import times
from takeback_doors.cli.actors import called
from takeback_doors.cli.folders import as_one, name
from takeback_doors.cli.ids import shortened
from takeback_doors.cli.paths import of_resource

_SHOWN = 10
_AGAINST = ("conflict", "gone")
_REASONS = {
    "missing-blob": "what it held is not kept any more",
    "damaged-blob": "what was kept of it is damaged",
}


def runs(step: dict[str, Any]) -> bool:
    """Whether a step would be carried out as it is planned."""
    return step["status"] in ("clean", "merge") or bool(step.get("forced"))


def blocking(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps for which a plan is refused."""
    return [step for step in plan["steps"] if not runs(step)]


def left_out(step: dict[str, Any]) -> bool:
    """Whether a step leaves something as it is that was asked for."""
    return any(each["why"] != "not_asked" for each in step.get("stays") or ())


def of_step(plan: dict[str, Any], step: dict[str, Any]) -> list[dict[str, Any]]:
    """The conflicts of a step, of each folder one, and in `outside` what is known where no act did it."""
    found = [each for each in plan["conflicts"] if each["act"] == step["act"]]
    return [each | {"outside": _outside(plan, step, each)} for each in as_one(found, "reason", "by", "at")]


def told(conflicts: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Lines on what is in conflict, each followed by who did that and when."""
    for conflict in conflicts[:_SHOWN]:
        if conflict.get("by"):
            yield _by_an_act(conflict)
            continue
        yield f"{name(conflict['resource'])}: {reason(conflict['reason'])}"
        if conflict["outside"]:
            yield f"  {conflict['outside']}"
    if (more := len(conflicts) - _SHOWN) > 0:
        yield f"and {more} more"


def reason(words: str) -> str:
    """What stands against something, in words for people."""
    return _REASONS.get(words, words)


def unhindered(step: dict[str, Any]) -> int:
    """How many things of a step stand in no conflict."""
    return sum(each["action"] not in _AGAINST for each in as_one(step["effects"], "action"))


def missing_folder(conflict: dict[str, Any]) -> str:
    """The folder that a path in conflict should lie in, when that is gone; else nothing."""
    path = of_resource(conflict["resource"]) or ""
    folder = os.path.dirname(path.rstrip("/"))
    return folder if folder and not os.path.isdir(folder) else ""


def _by_an_act(conflict: dict[str, Any]) -> str:
    when = f", {times.short(conflict['at'])}" if conflict.get("at") else ""
    ids = list(shortened(conflict.get("dependents") or []).values())
    which = f" (act {ids[0]})" if ids else ""
    return f"{name(conflict['resource'])} was changed since by {called(conflict['by'])}{when}{which}"


def _outside(plan: dict[str, Any], step: dict[str, Any], conflict: dict[str, Any]) -> str:
    """What is known of a change that no act in the log made; nothing where there is none."""
    resource, now = conflict["resource"], conflict["ours"]
    looked_at = resource in {each["resource"] for each in step["effects"] if each["action"] in _AGAINST}
    looked_at = looked_at or resource in {each["resource"] for each in step.get("stays") or ()}
    if conflict.get("by") or not looked_at or now == conflict["base"]:
        return ""
    # What a newer step is to take back first has written on the disk since.
    newer = plan["steps"][: plan["steps"].index(step)]
    hidden = now == "absent" or any(resource == each["resource"] for one in newer for each in one["effects"])
    written = "" if hidden else _written(resource)
    return "not by an act in the log" + (f"; last written {times.short(written)}" if written else "")


def _written(resource: str) -> str:
    """When a file was last written, by the file system; of a folder that would say too little."""
    try:
        found = os.lstat(of_resource(resource) or "")
    except (OSError, ValueError):
        return ""
    return "" if stat.S_ISDIR(found.st_mode) else moments.stamp(found.st_mtime)
