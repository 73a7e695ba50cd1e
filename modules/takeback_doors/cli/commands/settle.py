"""`takeback settle`"""

from __future__ import annotations

import click

from takeback_doors.cli.ids import find_act
from takeback_doors.cli.output import say
from takeback_doors.cli.shell import Shell, with_shell


@click.command()
@click.argument("act_id", metavar="ID")
@click.option("--happened/--did-not-happen", default=None, help="Your word on it.")
@with_shell
def settle(shell: Shell, act_id: str, happened: bool | None) -> None:
    """Say whether an unknown act happened.

    A crash hid what became of it, and nobody guesses.
    """
    if happened is None:
        raise click.UsageError("Say which: --happened or --did-not-happen.")
    settled = shell.call("undo.settle", {"id": find_act(shell, act_id, last=False), "happened": happened})
    shell.answer(settled, lambda: say(f"It is {settled['state']} now."))
