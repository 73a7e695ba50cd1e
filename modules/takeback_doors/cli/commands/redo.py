"""`takeback redo`"""

from __future__ import annotations

import click

from takeback_doors.cli.ids import find_act
from takeback_doors.cli.presence import require_terminal
from takeback_doors.cli.shell import Shell, with_shell
from takeback_doors.cli.undoing import carry_out


@click.command()
@click.argument("act_id", metavar="ID", required=False)
@click.option("--last", is_flag=True, help="The newest undo.")
@click.option("--dry-run", is_flag=True, help="Only show the plan.")
@click.option("--digest", metavar="DIGEST", help="Refuse any plan but the one with this digest.")
@click.option("--force", is_flag=True, help="Overwrite in spite of conflicts; asks first, on a terminal.")
@with_shell
def redo(shell: Shell, act_id: str | None, last: bool, dry_run: bool, digest: str | None, force: bool) -> int:
    """Do again what was taken back: one act, or all of one undo."""
    require_terminal(force=force)
    selection = {"id": find_act(shell, act_id, last=last, undone=True)}
    return carry_out(
        shell, "undo.redo", selection, preview={"redo": True}, dry_run=dry_run, force=force, digest=digest
    )
