"""Parts of an act, as a person names them: by paths, those that may be somebody else's doing among them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from takeback.errors import UsageError
from takeback_doors.cli.ids import shortened
from takeback_doors.cli.output import say
from takeback_doors.cli.paths import near, of_resource, to_resource
from takeback_doors.cli.plain import visible
from takeback_doors.cli.shell import Shell

_PAGE = 500


def find_parts(shell: Shell, act_id: str, paths: Sequence[str]) -> tuple[str, list[str]]:
    """The act and the resources that are meant by an act and some paths.

    What was coincident with the act is no part of it and has an act of its own, which is then the one that is
    meant. Raises UsageError `usage.path` where that would be several acts.
    """
    names = [to_resource(path) for path in paths]
    own = {name: _of_its_own(shell, act_id, name) for name in names}
    acts = {found or act_id for found in own.values()}
    if len(acts) > 1:
        first, found = next((name, found) for name, found in own.items() if found)
        raise UsageError(
            "usage.path",
            f"{_called(first)} may be somebody else's doing, and has an act of its own",
            f"Take it back by itself: takeback undo {shortened([found])[found]}",
        )
    (meant,) = acts
    if meant != act_id:
        say(f"{_called(names[0])} may be somebody else's doing; this is the act of its own that it has.")
    return meant, names


def _of_its_own(shell: Shell, act_id: str, name: str) -> str | None:
    """The act on a path that was coincident with another act."""
    path = os.path.normpath(of_resource(name) or "")
    found = shell.call("undo.list", {"id_prefix": act_id, "limit": 1})["acts"]
    if not any(path in _coincident(act) for act in found):
        return None
    for act in shell.call("undo.list", {"resource": name, "limit": _PAGE})["acts"]:
        if act["id"] != act_id and act["undoable"] and _coincident(act) == [path]:
            return str(act["id"])
    return None


def _coincident(act: dict[str, Any]) -> list[str]:
    found = act["input"].get("coincident")
    return found if isinstance(found, list) else []


def _called(name: str) -> str:
    return visible(near(of_resource(name) or name))
