"""Laying out a conflict: the versions that it is between, as files beside each file in conflict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from takeback_doors.cli import screen
from takeback_doors.cli.output import say
from takeback_doors.cli.paths import near
from takeback_doors.cli.shell import Shell


def lay_out(shell: Shell, selection: dict[str, Any]) -> list[dict[str, Any]]:
    """Have them written for each file that stands in the way of an undo; what each answer says."""
    plan = shell.call("undo.preview", selection)["plan"]
    files = {
        each["resource"]: each["act"]
        for each in plan["conflicts"]
        if each["resource"].startswith("files:/") and not each["resource"].endswith("/")
    }
    return [shell.call("files.lay_out", {"path": path, "act": of}) for path, of in files.items()]


def show_laid(laid: Sequence[dict[str, Any]]) -> None:
    """Print where they are, and how to be rid of them again."""
    if not laid:
        say("No file stands in the way, so there is nothing to lay out.")
    for one in laid:
        for path in one["paths"]:
            screen.console().print(screen.text(near(path)), soft_wrap=True)
        for note in one["notes"]:
            say(note)
    acts = [one["act"] for one in laid if one["act"]]
    if acts:
        say(
            f"base: as the act left it; ours: as it is now; theirs: as it would go back to. "
            f"Remove them with: takeback undo {acts[0]}"
        )
