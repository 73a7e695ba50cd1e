"""Whether the person is there, and says yes."""

from __future__ import annotations

import sys
from typing import Any

import click

from takeback.errors import RefusedError


def require_terminal(*, force: bool) -> None:
    """Raises RefusedError `force.no_terminal` where a question would come that nobody could answer."""
    if force and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise RefusedError(
            "force.no_terminal",
            "--force overwrites what others wrote since, so it asks first; there is no terminal to ask on",
            "Run it in a terminal. Without --force, conflicts are only listed.",
        )


def confirm_force(plan: dict[str, Any]) -> None:
    """Show what would be overwritten and ask; raises RefusedError `force.declined` on a no."""
    from takeback_doors.cli.plans import show_plan

    show_plan(plan, stderr=True)
    if not click.confirm("Overwrite what others wrote since? It is captured first", err=True):
        raise RefusedError("force.declined", "You said no; nothing was changed")
