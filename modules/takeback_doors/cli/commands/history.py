"""`takeback history`"""

from __future__ import annotations

from typing import Any

import click

from takeback_doors.cli.paths import to_resource
from takeback_doors.cli.shell import Shell, with_shell


@click.command()
@click.argument("path", metavar="PATH")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@click.option("--cursor", metavar="CURSOR", help="Go on where an earlier page ended: its `next`.")
@with_shell
def history(shell: Shell, path: str, limit: int, cursor: str | None) -> None:
    """List what was done to a file or folder, newest first, undos too."""
    page = shell.call("files.history", {"path": to_resource(path), "limit": limit, "cursor": cursor})
    shell.answer(page, lambda: _show(page))


def _show(page: dict[str, Any]) -> None:
    from takeback_doors.cli.acts import show_past
    from takeback_doors.cli.output import say

    show_past(page["acts"])
    if page["next"] is not None:
        say(f"There is more: --cursor {page['next']}")
