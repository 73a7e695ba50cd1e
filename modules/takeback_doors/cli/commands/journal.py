"""`takeback journal`"""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

import click

from takeback import moments
from takeback.errors import EXIT_CODES, UsageError
from takeback_doors.cli.output import write_json
from takeback_doors.cli.paths import to_resource
from takeback_doors.cli.presence import confirm_force, require_terminal
from takeback_doors.cli.shell import Shell, with_shell


@click.group()
def journal() -> None:
    """Take back what one agent did in one session, path by path."""


@journal.command()
@click.option(
    "--session", "named", metavar="AGENT", required=True, help="AGENT:SESSION, or the session's id."
)
@click.option("--dry-run", is_flag=True, help="Only tell what would be done.")
@click.option("--force", is_flag=True, help="Overwrite in spite of conflicts; asks first, on a terminal.")
@click.option("--since", metavar="ISO", help="Only what was done since then.")
@click.option("--root", metavar="DIR", help="Only what touched this folder; else the work tree around here.")
@with_shell
def undo(shell: Shell, named: str, dry_run: bool, force: bool, since: str | None, root: str | None) -> int:
    """Put each path back as the session found it.

    The answer is JSON: {"ok", "root", "agentId", "dryRun", "items", "restored", "conflicts"}. What
    conflicts is left out and listed, with exit code 3.
    """
    from takeback_doors.cli.journal import Journal, counted

    require_terminal(force=force)
    at = _moment(since) if since is not None else None
    top = os.path.realpath(root) if root is not None else _around(os.getcwd())
    found = Journal(shell, named)
    selection = {
        "agent": found.agent,
        "session": found.session,
        "since": at,
        "resource": to_resource(top),
    }
    outcome = _taken(shell, selection, dry_run=dry_run, force=force)
    items = found.items(outcome, top, at)
    counts = counted(items)
    about = {"ok": True, "root": top, "agentId": found.agent_id, "dryRun": dry_run}
    write_json({**about, "items": items, **counts})
    return EXIT_CODES["conflict"] if counts["conflicts"] else 0


def _taken(shell: Shell, selection: dict[str, Any], *, dry_run: bool, force: bool) -> dict[str, Any]:
    if not (dry_run or force):
        return shell.call("undo.rewind", {**selection, "skip_conflicts": True})
    asked = {**selection, "skip_conflicts": True, "force": force}
    planned = shell.call("undo.preview", asked, present=force)
    if dry_run:
        return planned
    confirm_force(planned["plan"])
    return shell.call("undo.rewind", {**asked, "digest": planned["plan"]["digest"]}, present=True)


def _moment(text: str) -> str:
    try:
        return moments.stamp(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise UsageError(
            "ERR_INVALID_PLAN",
            f"{text!r:.60} is not an ISO 8601 time",
            "Write it as in 2026-11-30T09:00:00Z.",
        ) from None


def _around(folder: str) -> str:
    """The top of the git work tree around a folder, else the folder itself."""
    here = os.path.realpath(folder)
    top = here
    while not os.path.lexists(os.path.join(top, ".git")):
        if top == os.path.dirname(top):
            return here
        top = os.path.dirname(top)
    return top
