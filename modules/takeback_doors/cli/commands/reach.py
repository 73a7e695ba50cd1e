"""`takeback reach`"""

from __future__ import annotations

from typing import Any

import click

from takeback_doors.cli.complete import tool_names
from takeback_doors.cli.shell import Shell, with_shell


@click.group()
def reach() -> None:
    """Who may call what."""


@reach.command("explain")
@click.argument("caller")
@click.argument("tool", shell_complete=tool_names)
@with_shell
def explain(shell: Shell, caller: str, tool: str) -> None:
    """Say whether a caller may call a tool, and which rule decides.

    CALLER is a label: cli:person, mcp:agent:NAME or module:NAME.
    """
    decision = shell.call("kernel.reach", {"caller": caller, "tool": tool})
    shell.answer(decision, lambda: _show(decision))


def _show(decision: dict[str, Any]) -> None:
    from takeback_doors.cli.screen import show_fields, text

    verdict = text("allowed", "green") if decision["allowed"] else text("denied", "red")
    show_fields([("Decision", verdict), ("Because", decision["reason"]), ("Rule", decision["rule"])])
