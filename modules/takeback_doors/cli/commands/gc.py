"""`takeback gc`"""

from __future__ import annotations

from typing import Any

import click

from takeback_doors.cli.shell import Shell, with_shell


@click.command()
@with_shell
def gc(shell: Shell) -> None:
    """Remove what has been kept long enough.

    Acts older than the retention time go, but those that are pinned, and then the copies of files that
    nothing needs any more. It also happens by itself, once a day.
    """
    collected = {name: shell.call_or_why(f"{name}.gc")[0] for name in ("undo", "files")}
    shell.answer(collected, lambda: _show(collected))


def _show(collected: dict[str, dict[str, Any] | None]) -> None:
    from takeback_doors.cli.screen import show_fields

    fields = []
    for module, removed in collected.items():
        words = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in (removed or {}).items())
        fields.append((module, words if removed is not None else "is switched off"))
    show_fields(fields)
