"""`takeback tools`"""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from takeback.errors import TakebackError
from takeback_doors.cli.complete import tool_names
from takeback_doors.cli.listing import ListingGroup
from takeback_doors.cli.presence import call_present, wants_presence
from takeback_doors.cli.shell import Shell, with_shell


@click.group(cls=ListingGroup)
def tools() -> None:
    """What can be called, and calling it.

    Without a command it lists them.
    """


@tools.command("list")
@click.option("--caller", metavar="LABEL", help="Only what this caller reaches, such as mcp:agent:juno.")
@with_shell
def list_tools(shell: Shell, caller: str | None) -> None:
    """List the running modules' tools."""
    found = shell.call("kernel.tools", {"caller": caller})["tools"]
    shell.answer({"tools": found}, lambda: _show(found))


@tools.command("call")
@click.argument("name", shell_complete=tool_names)
@click.argument("arguments", metavar="[JSON]", default="{}")
@click.option("--dry-run", is_flag=True, help="Only say what it would do.")
@with_shell
def call(shell: Shell, name: str, arguments: str, dry_run: bool) -> None:
    """Call a tool as yourself; JSON is its input, or - to read that from stdin.

    A tool that wants you to be there asks first, on a terminal.
    """
    given = _parsed(sys.stdin.read() if arguments == "-" else arguments)
    result = _result(shell, name, given, dry_run=dry_run)
    shell.answer({"result": result}, lambda: click.echo(json.dumps(result, indent=2)))


def _result(shell: Shell, name: str, given: dict[str, Any], *, dry_run: bool) -> dict[str, Any]:
    try:
        return shell.daemon().call(name, given, dry_run=dry_run)
    except TakebackError as error:
        if dry_run or not wants_presence(error, name):
            raise
    return call_present(shell, name, [given])


def _parsed(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"not valid JSON: {error}", param_hint="JSON") from None
    if not isinstance(given, dict):
        raise click.BadParameter("a tool's input is a JSON object", param_hint="JSON")
    return given


def _show(found: list[dict[str, Any]]) -> None:
    from takeback_doors.cli.screen import show_table

    rows = [
        (tool["name"], tool["effect"], ", ".join(sorted(tool["reach"])), tool["summary"]) for tool in found
    ]
    show_table(("Tool", "Effect", "Reach", "What it does"), rows, wide="What it does", none="No tools.")
