"""`takeback modules`"""

from __future__ import annotations

from typing import Any

import click

from takeback_doors.cli.complete import module_names
from takeback_doors.cli.listing import ListingGroup
from takeback_doors.cli.output import say
from takeback_doors.cli.shell import Shell, with_shell


@click.group(cls=ListingGroup)
def modules() -> None:
    """See modules, and switch them on and off.

    Without a command it lists them.
    """


@modules.command("list")
@with_shell
def list_modules(shell: Shell) -> None:
    """List the modules: running or not, and why not."""
    found = shell.call("kernel.modules")
    shell.answer({"modules": found["modules"], "problems": found["problems"]}, lambda: _show(found))


def _changing(verb: str, words: str) -> None:
    @modules.command(verb, help=words)
    @click.argument("name", shell_complete=module_names)
    @with_shell
    def change(shell: Shell, name: str) -> None:
        changed = shell.call(f"kernel.{verb}", {"name": name})
        shell.answer(changed, lambda: say("Done."))


_changing("enable", "Switch a module on.")
_changing("disable", "Switch a module off; calls that are running are finished first.")
_changing("trust", "Let an added module use what only modules may use.")
_changing("untrust", "Take that trust back.")


def _show(found: dict[str, Any]) -> None:
    from takeback_doors.cli.screen import show_table, state

    rows = [
        (module["name"], state(module["state"]), _origin(module), module["why"] or module["summary"])
        for module in found["modules"]
    ]
    show_table(("Module", "State", "Origin", "About"), rows, wide="About", none="No modules.")
    for problem in found["problems"]:
        say(problem)


def _origin(module: dict[str, Any]) -> str:
    if module["builtin"]:
        return "built in"
    return "added, trusted" if module["trusted"] else "added"
