"""`takeback audit`"""

from __future__ import annotations

from typing import Any

import click

from takeback_doors.cli.complete import tool_names
from takeback_doors.cli.shell import Shell, with_shell
from takeback_doors.cli.times import parse_since


@click.command()
@click.option("--caller", metavar="LABEL", help="Only this caller's calls, such as mcp:agent:juno.")
@click.option("--tool", metavar="NAME", shell_complete=tool_names, help="Only calls of this tool.")
@click.option("--allowed/--refused", default=None, help="Only calls that were allowed, or refused.")
@click.option("--since", metavar="TIME", help="Only since then: 2h, 30m, 7d, or a date and time.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="At most so many."
)
@click.option("--cursor", type=int, metavar="CURSOR", help="Go on where an earlier page ended: its `next`.")
@with_shell
def audit(shell: Shell, since: str | None, **filters: Any) -> None:
    """List calls, refused ones too, newest first."""
    filters["since"] = parse_since(since) if since else None
    page = shell.call("audit.list", filters)
    shell.answer({"calls": page["rows"], "next": page["next"]}, lambda: _show(page))


def _show(page: dict[str, Any]) -> None:
    from takeback_doors.cli import times
    from takeback_doors.cli.output import say
    from takeback_doors.cli.screen import show_table, text

    rows = []
    for row in page["rows"]:
        outcome = text(row["outcome"], "green" if row["outcome"] in ("ok", "rehearsed") else "red")
        rows.append((times.short(row["at"]), row["caller"], row["tool"], outcome, row["reason"]))
    show_table(("When", "Caller", "Tool", "Outcome", "Why"), rows, wide="Why", none="No calls that fit.")
    if page["next"] is not None:
        say(f"There is more: --cursor {page['next']}")
