"""`takeback gc`"""

from __future__ import annotations

from typing import Any

import click

from takeback.errors import NotFoundError
from takeback_doors.cli.shell import Shell, with_shell


@click.command()
@with_shell
def gc(shell: Shell) -> None:
    """Remove what has been kept long enough.

    Acts older than the retention time go, but those that are pinned, and then the copies of files that
    nothing needs any more. It also happens by itself, once a day.
    """
    collected = {"undo": _collect(shell, "undo.gc"), "files": _collect(shell, "files.gc")}
    shell.answer(collected, lambda: _show(collected))


def _collect(shell: Shell, tool: str) -> dict[str, Any] | None:
    try:
        return shell.call(tool)
    except NotFoundError as error:
        if error.code != "tool.unknown":
            raise
        return None


def _show(collected: dict[str, dict[str, Any] | None]) -> None:
    from takeback_doors.cli.screen import show_fields

    fields = []
    for module, removed in collected.items():
        words = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in (removed or {}).items())
        fields.append((module, words if removed is not None else "is switched off"))
    show_fields(fields)
