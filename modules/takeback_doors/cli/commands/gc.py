"""`takeback gc`"""

from __future__ import annotations

from typing import Any

import click

from takeback_doors.cli.shell import Shell, with_shell
from takeback_doors.cli.times import parse_days


@click.command()
@click.option("--undo-ttl", metavar="TIME", help="Acts older than this go, such as 7d; else by the setting.")
@click.option("--dry-run", is_flag=True, help="Only count what would go.")
@with_shell
def gc(shell: Shell, undo_ttl: str | None, dry_run: bool) -> None:
    """Remove what has been kept long enough.

    Acts older than the retention time go, but those that are pinned, and then the copies of files that
    nothing needs any more. It also happens by itself, once a day.
    """
    asked = {"undo": {"days": parse_days(undo_ttl)} if undo_ttl else {}, "files": {}}
    collected = {
        name: shell.call_or_why(f"{name}.gc", args, dry_run=dry_run)[0] for name, args in asked.items()
    }
    undo = collected["undo"] or {}
    counts = {"undoLive": undo.get("live"), "undoPruned": undo.get("removed")}
    shell.answer({**collected, **counts}, lambda: _show(collected))


def _show(collected: dict[str, dict[str, Any] | None]) -> None:
    from takeback_doors.cli.screen import show_fields

    fields = []
    for module, removed in collected.items():
        words = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in (removed or {}).items())
        fields.append((module, words if removed is not None else "is switched off"))
    show_fields(fields)
