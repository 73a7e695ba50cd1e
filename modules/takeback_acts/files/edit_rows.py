"""Edit rows: what the log says of an edit that somebody else's tool made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from takeback_acts.files.edit_models import EndEdit
from takeback_acts.files.grouping import Back
from takeback_acts.files.open_edits import OpenEdit
from takeback_acts.files.paths import resource, shown

_TOOL = "files.end_edit"
_TOLD = 50


def edit_row(
    edit: OpenEdit, backs: Sequence[Back], notes: Sequence[str], args: EndEdit, root: bytes
) -> dict[str, Any]:
    """The arguments of `act` for these paths of an edit, within `root`."""
    coincident = [shown(back.path) for back in backs if back.path in edit.shared]
    why = [*notes, *(f"coincident: {path:.600}" for path in coincident)][:_TOLD]
    tail = ", interrupted" if args.interrupted else ""
    return {
        "tool": _TOOL,
        "input": {
            "tool": edit.tool,
            "paths": [shown(back.path) for back in backs],
            "interrupted": args.interrupted,
            "coincident": coincident,
        },
        "summary": f"{_summary(backs):.900}{tail}",
        "why": [line[:1000] for line in why],
        "inverse": (
            "files.restore",
            {"root": resource(root), "items": [back.dump() for back in backs]},
        ),
        "touched": [triple for back in backs for triple in back.touched],
        "blobs": sorted(_named(backs)),
    }


def _summary(backs: Sequence[Back]) -> str:
    if len(backs) == 1:
        return f"{_verb(backs[0])} {shown(backs[0].path)}"
    return f"Changed {len(backs)} paths: {', '.join(shown(back.path) for back in backs)}"


def _verb(back: Back) -> str:
    if back.before.kind == "absent":
        return "Created"
    return "Deleted" if back.after.kind == "absent" else "Edited"


def _named(backs: Sequence[Back]) -> set[str]:
    states = [state for back in backs for state in (back.before, back.after)]
    return {name for state in states for name in (state.sha256, state.manifest) if name}
