"""`takeback diff`"""

from __future__ import annotations

from typing import Any

import click

from takeback_doors.cli.ids import find_act
from takeback_doors.cli.paths import to_resource
from takeback_doors.cli.shell import Shell, with_shell


@click.command()
@click.argument("path", metavar="PATH")
@click.argument("act_id", metavar="ID", required=False)
@with_shell
def diff(shell: Shell, path: str, act_id: str | None) -> None:
    """Show what has changed in a file since before the last act on it, or what one act changed in it."""
    act = find_act(shell, act_id, last=False) if act_id is not None else None
    found = shell.call("files.diff", {"path": to_resource(path), "act": act})
    shell.answer(found, lambda: _show(found))


def _show(found: dict[str, Any]) -> None:
    from takeback_doors.cli import screen
    from takeback_doors.cli.output import say

    if found["text"]:
        screen.show_diff(found["text"])
    else:
        say(found["note"] or "Nothing has changed.")
