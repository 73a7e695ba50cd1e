"""`takeback rewind`"""

from __future__ import annotations

import click

from takeback_doors.cli.paths import to_resource
from takeback_doors.cli.presence import require_terminal
from takeback_doors.cli.shell import Shell, with_shell
from takeback_doors.cli.times import parse_since
from takeback_doors.cli.undoing import carry_out


@click.command()
@click.option("--session", metavar="ID", help="All of a session.")
@click.option("--turn", metavar="ID", help="A message's turn, and all of its session after it.")
@click.option("--since", metavar="TIME", help="Everything since then: 2h, 30m, 7d, or a date and time.")
@click.option("--agent", metavar="NAME", help="What this agent did.")
@click.option("--path", metavar="PATH", help="What touched this file, or anything in this folder.")
@click.option("--dry-run", is_flag=True, help="Only show the plan.")
@click.option("--skip-conflicts", is_flag=True, help="Leave out what conflicts, and what is older on it.")
@click.option("--digest", metavar="DIGEST", help="Refuse any plan but the one with this digest.")
@click.option("--force", is_flag=True, help="Overwrite in spite of conflicts; asks first, on a terminal.")
@with_shell
def rewind(
    shell: Shell,
    session: str | None,
    turn: str | None,
    since: str | None,
    agent: str | None,
    path: str | None,
    dry_run: bool,
    skip_conflicts: bool,
    digest: str | None,
    force: bool,
) -> int:
    """Take many acts back: all of them or none."""
    selection = {"session": session, "turn": turn, "agent": agent}
    selection["since"] = parse_since(since) if since else None
    selection["resource"] = to_resource(path) if path else None
    if not any(selection.values()):
        raise click.UsageError("Say what to rewind: --session, --turn, --since, --agent or --path.")
    if force and skip_conflicts:
        raise click.UsageError("--force and --skip-conflicts exclude each other.")
    require_terminal(force=force)
    how = {"skip_conflicts": skip_conflicts}
    return carry_out(shell, "undo.rewind", selection, how=how, dry_run=dry_run, force=force, digest=digest)
