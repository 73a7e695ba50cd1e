"""`takeback connect` and `takeback disconnect`"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from takeback_doors.cli.output import say
from takeback_doors.cli.paths import near
from takeback_doors.cli.plain import visible
from takeback_doors.cli.shell import F, Shell, with_shell

# What says where an agent keeps its settings; the daemon may run with other values of them.
_VARIABLES = ("HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME")


def _options(command: F) -> F:
    where: Callable[[F], F] = click.option(
        "--project/--user", "project", help="In the settings for this folder, or for all of yours (usual)."
    )
    dry: Callable[[F], F] = click.option("--dry-run", is_flag=True, help="Only say what would be changed.")
    return click.argument("agent")(where(dry(with_shell(command))))


@click.command()
@_options
def connect(shell: Shell, agent: str, project: bool, dry_run: bool) -> None:
    """Have a coding agent tell takeback what its own tools change.

    AGENT is claude, codex, cursor, gemini or opencode. Its settings get an entry that runs takeback's gate
    before and after each tool; everything else in them stays.
    """
    done = _call(shell, "hook.connect", agent, project=project, dry_run=dry_run)
    shell.answer({"connection": done}, lambda: _show(done, "connected", dry_run=dry_run))


@click.command()
@_options
def disconnect(shell: Shell, agent: str, project: bool, dry_run: bool) -> None:
    """Take takeback's entries out of a coding agent's settings, and nothing else."""
    done = _call(shell, "hook.disconnect", agent, project=project, dry_run=dry_run)
    shell.answer({"connection": done}, lambda: _show(done, "disconnected", dry_run=dry_run))


def _call(shell: Shell, tool: str, agent: str, *, project: bool, dry_run: bool) -> dict[str, Any]:
    environ = {name: os.environ[name] for name in _VARIABLES if os.environ.get(name)}
    environ.setdefault("HOME", os.path.expanduser("~"))
    folder = os.getcwd() if project else None
    return shell.call(tool, {"agent": agent, "folder": folder, "environ": environ}, dry_run=dry_run)


def _show(done: dict[str, Any], word: str, *, dry_run: bool) -> None:
    path = visible(near(done["path"]))
    if not done["changed"]:
        say(f"{done['agent']} is {word} already; {path} stays as it is.")
        return
    would = "would be changed; nothing was done" if dry_run else "was changed"
    say(f"{done['agent']}: {path} {would}.")
    if done["backup"]:
        say(f"As it was before it is kept in {visible(near(done['backup']))}.")
    if done["note"] and word == "connected":
        say(done["note"])
