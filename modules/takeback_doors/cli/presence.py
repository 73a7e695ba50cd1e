"""Whether the person is there, and says yes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from takeback.errors import RefusedError, TakebackError
from takeback_doors.cli.plain import visible
from takeback_doors.cli.shell import Shell


def require_terminal(*, force: bool) -> None:
    """Raises RefusedError `force.no_terminal` where a question would come that nobody could answer."""
    if force:
        _require_terminal(
            "force.no_terminal",
            "--force overwrites what others wrote since, so it asks first; there is no terminal to ask on",
            "Run it in a terminal. Without --force, conflicts are only listed.",
        )


def confirm_force(plan: dict[str, Any]) -> None:
    """Show what would be overwritten and ask; raises RefusedError `force.declined` on a no."""
    from takeback_doors.cli.plans import show_plan

    show_plan(plan, stderr=True)
    _confirm("force.declined", "Overwrite what others wrote since? It is captured first")


def call_present(shell: Shell, tool: str, inputs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Call a tool that wants the person there, once for each input, after one yes to all; the last answer.

    What a rehearsal finds wrong is raised before anything is asked. Raises RefusedError
    `presence.no_terminal`, and `presence.declined` on a no; nothing was done then.
    """
    from takeback_doors.cli.questions import question

    asked = question(tool, inputs, [_rehearsed(shell, tool, given) for given in inputs])
    _require_terminal(
        "presence.no_terminal",
        f'This asks first, "{asked.text}", and there is no terminal to ask on',
        "Run it in a terminal of your own.",
    )
    if asked.about:
        click.echo(asked.about, err=True)
    _confirm("presence.declined", asked.text)
    return [shell.daemon().call(tool, given, present=True) for given in inputs][-1]


def wants_presence(error: TakebackError, tool: str) -> bool:
    """Whether it is this tool, and none that it called, that was refused for want of the person."""
    return error.code == "call.presence" and error.data.get("tool") == tool


def _rehearsed(shell: Shell, tool: str, given: dict[str, Any]) -> dict[str, Any]:
    try:
        return shell.daemon().call(tool, given, dry_run=True)
    except TakebackError as error:
        if error.code == "call.no_preview" or wants_presence(error, tool):
            return {}  # only doing it tells
        raise


def _require_terminal(code: str, message: str, hint: str) -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise RefusedError(code, message, hint)


def _confirm(code: str, text: str) -> None:
    if not click.confirm(visible(text), err=True):
        raise RefusedError(code, "You said no; nothing was changed")
