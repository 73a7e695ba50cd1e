"""`takeback modules`"""

from __future__ import annotations

from typing import Any

import click

from takeback_doors.cli.complete import module_names
from takeback_doors.cli.listing import ListingGroup
from takeback_doors.cli.output import say
from takeback_doors.cli.presence import call_present
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


def _giving(verb: str, words: str) -> None:
    @modules.command(verb, help=f"{words} Asks first, on a terminal.")
    @click.argument("name", shell_complete=module_names)
    @with_shell
    def change(shell: Shell, name: str) -> None:
        changed = call_present(shell, f"kernel.{verb}", [{"name": name}])
        shell.answer(changed, lambda: say("Done."))


_giving("enable", "Switch a module on.")
_giving("disable", "Switch a module off; calls that are running are finished first.")
_giving("trust", "Let an added module use what only modules may use.")


@modules.command("untrust")
@click.argument("name", shell_complete=module_names)
@with_shell
def untrust(shell: Shell, name: str) -> None:
    """Take that trust back."""
    changed = shell.call("kernel.untrust", {"name": name})
    shell.answer(changed, lambda: say("Done."))


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
