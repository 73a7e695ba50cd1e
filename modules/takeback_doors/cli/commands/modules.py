"""`takeback modules`"""

from __future__ import annotations

from typing import Any

import click

from takeback_doors.cli.complete import module_names
from takeback_doors.cli.listing import ListingGroup
from takeback_doors.cli.output import say
from takeback_doors.cli.shell import Shell, with_shell

_name = click.argument("name", shell_complete=module_names)


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


@modules.command("enable")
@_name
@with_shell
def enable(shell: Shell, name: str) -> None:
    """Switch a module on."""
    _change(shell, "kernel.enable", name)


@modules.command("disable")
@_name
@with_shell
def disable(shell: Shell, name: str) -> None:
    """Switch a module off; calls that are running are finished first."""
    _change(shell, "kernel.disable", name)


@modules.command("trust")
@_name
@with_shell
def trust(shell: Shell, name: str) -> None:
    """Let an added module use what only modules may use."""
    _change(shell, "kernel.trust", name)


@modules.command("untrust")
@_name
@with_shell
def untrust(shell: Shell, name: str) -> None:
    """Take that trust back."""
    _change(shell, "kernel.untrust", name)


def _change(shell: Shell, tool: str, name: str) -> None:
    changed = shell.call(tool, {"name": name})
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
