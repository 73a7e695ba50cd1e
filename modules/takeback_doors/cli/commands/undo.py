"""`takeback undo`"""

from __future__ import annotations

from typing import Any

import click

from takeback_doors.cli.ids import find_act
from takeback_doors.cli.presence import require_terminal
from takeback_doors.cli.shell import Shell, with_shell
from takeback_doors.cli.undoing import carry_out


@click.command()
@click.argument("act_id", metavar="ID", required=False)
@click.option("--last", is_flag=True, help="The newest act that can be undone.")
@click.option("--dry-run", is_flag=True, help="Only show the plan.")
@click.option("--path", "paths", metavar="PATH", multiple=True, help="Only this, and what lies in it.")
@click.option("--skip-conflicts", is_flag=True, help="Leave out what conflicts, and take back the rest.")
@click.option("--with-dependents", is_flag=True, help="Undo later acts on the same things first.")
@click.option("--digest", metavar="DIGEST", help="Refuse any plan but the one with this digest.")
@click.option("--lay-out", is_flag=True, help="Only put what a conflict is between beside each file.")
@click.option("--force", is_flag=True, help="Overwrite in spite of conflicts; asks first, on a terminal.")
@with_shell
def undo(
    shell: Shell,
    act_id: str | None,
    last: bool,
    dry_run: bool,
    paths: tuple[str, ...],
    skip_conflicts: bool,
    with_dependents: bool,
    digest: str | None,
    lay_out: bool,
    force: bool,
) -> int:
    """Take one act back, or a part of it.

    ID is the act's id or its beginning, at least 8 characters.
    """
    if force and skip_conflicts:
        raise click.UsageError("--force and --skip-conflicts exclude each other.")
    require_terminal(force=force)
    found = find_act(shell, act_id, last=last)
    selection = {"id": found, "dependents": with_dependents}
    if paths:
        from takeback_doors.cli.parts import find_parts

        selection["id"], selection["only"] = find_parts(shell, found, paths)
    if lay_out:
        return _lay_out(shell, selection)
    how = {"skip_conflicts": skip_conflicts}
    return carry_out(shell, "undo.run", selection, how=how, dry_run=dry_run, force=force, digest=digest)


def _lay_out(shell: Shell, selection: dict[str, Any]) -> int:
    """Put the versions that conflicts are between beside each file in conflict."""
    from takeback_doors.cli.laying import lay_out, show_laid

    laid = lay_out(shell, selection)
    shell.answer({"laid": laid}, lambda: show_laid(laid))
    return 0
