"""`takeback log --follow`: each act as it happens."""

from __future__ import annotations

import json
import sys
from typing import Any

from takeback.errors import NotFoundError, UsageError
from takeback_doors.cli.shell import Shell

_KINDS = {"undo.recorded", "undo.done", "undo.failed"}
_COMPARED = ("agent", "session", "turn", "state")


def follow_log(shell: Shell, filters: dict[str, Any]) -> None:
    """Print the newest acts, oldest first, then every act as it is recorded or changes; ends with Ctrl-C."""
    if filters["resource"] or filters["cursor"]:
        raise UsageError("usage.follow", "--follow goes with neither --resource nor --cursor")
    with shell.another() as events:
        news = events.follow()
        for act in reversed(shell.call("undo.list", filters)["acts"]):
            _print(shell, act)
        for event in news:
            act = _act(shell, event["data"]["id"]) if event["kind"] in _KINDS else None
            if act and all(filters[name] in (None, act[name]) for name in _COMPARED):
                _print(shell, act)


def _act(shell: Shell, act_id: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = shell.call("undo.show", {"id": act_id})["act"]
    except NotFoundError:
        return None
    return found


def _print(shell: Shell, act: dict[str, Any]) -> None:
    if shell.as_json:
        sys.stdout.write(json.dumps({"ok": True, "act": act}) + "\n")
    else:
        from takeback_doors.cli.acts import show_line

        show_line(act)
    sys.stdout.flush()
