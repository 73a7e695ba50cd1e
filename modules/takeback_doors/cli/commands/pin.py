"""`takeback pin`"""

from __future__ import annotations

import click

from takeback_doors.cli.ids import find_act
from takeback_doors.cli.output import say
from takeback_doors.cli.shell import Shell, with_shell


@click.command()
@click.argument("act_id", metavar="ID", required=False)
@click.option("--last", is_flag=True, help="The newest act that can be undone.")
@click.option("--remove", is_flag=True, help="Let it go again.")
@with_shell
def pin(shell: Shell, act_id: str | None, last: bool, remove: bool) -> None:
    """Keep an act beyond its time."""
    pinned = shell.call("undo.pin", {"id": find_act(shell, act_id, last=last), "pinned": not remove})
    shell.answer(pinned, lambda: say("It will go in its time." if remove else "It is kept."))
