"""`takeback log`"""

from __future__ import annotations

from typing import Any

import click

from takeback_doors.cli.shell import Shell, with_shell
from takeback_doors.cli.times import parse_since

_STATES = ("pending", "done", "undoing", "undone", "failed", "abandoned", "unknown", "final")


@click.command()
@click.option("--agent", metavar="NAME", help="Only what this agent did.")
@click.option("--session", metavar="ID", help="Only this session.")
@click.option("--turn", metavar="ID", help="Only this message's turn.")
@click.option("--since", metavar="TIME", help="Only since then: 2h, 30m, 7d, or a date and time.")
@click.option("--state", type=click.Choice(_STATES), help="Only acts in this state.")
@click.option("--resource", metavar="URI", help="Only what touched this, such as files:/home/me/notes.md.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@click.option("--cursor", metavar="CURSOR", help="Go on where an earlier page ended: its `next`.")
@click.option("--follow", "-f", is_flag=True, help="Then wait, and show each act as it happens.")
@with_shell
def log(shell: Shell, since: str | None, follow: bool, **filters: Any) -> None:
    """List what was done, newest first."""
    filters["since"] = parse_since(since) if since else None
    if follow:
        from takeback_doors.cli.follow import follow_log

        follow_log(shell, filters)
        return
    page = shell.call("undo.list", filters)
    shell.answer({"acts": page["acts"], "next": page["next"]}, lambda: _show(page))


def _show(page: dict[str, Any]) -> None:
    from takeback_doors.cli.acts import show_acts
    from takeback_doors.cli.output import say

    show_acts(page["acts"])
    if page["next"] is not None:
        say(f"There is more: --cursor {page['next']}")
