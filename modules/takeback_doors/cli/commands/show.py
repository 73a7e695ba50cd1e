"""`takeback show`"""

from __future__ import annotations

from typing import Any

import click

from takeback_doors.cli.ids import find_act
from takeback_doors.cli.shell import Shell, with_shell


@click.command()
@click.argument("act_id", metavar="ID", required=False)
@click.option("--last", is_flag=True, help="The newest act that can be undone.")
@with_shell
def show(shell: Shell, act_id: str | None, last: bool) -> None:
    """Show one act, and what taking it back would do."""
    shown = shell.call("undo.show", {"id": find_act(shell, act_id, last=last)})
    shell.answer(shown, lambda: _show(shown))


def _show(shown: dict[str, Any]) -> None:
    from takeback_doors.cli.acts import show_act, show_acts
    from takeback_doors.cli.plans import show_plan
    from takeback_doors.cli.screen import console

    show_act(shown["act"])
    if shown.get("children"):
        console().print("\nWithin it")
        show_acts(shown["children"])
    if shown["plan"]["steps"]:
        console().print("\nTaking it back")
        show_plan(shown["plan"])
