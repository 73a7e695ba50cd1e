"""`takeback agents`"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

import click

from takeback_doors.cli.complete import agent_names
from takeback_doors.cli.listing import ListingGroup
from takeback_doors.cli.presence import call_present
from takeback_doors.cli.shell import Shell, with_shell
from takeback_doors.cli.times import is_past

_name = click.argument("name", shell_complete=agent_names)
_roots = click.option("--root", "roots", multiple=True, metavar="DIR", help="A folder; repeatable.")
_tables = click.option(
    "--table", "tables", multiple=True, metavar="DB.TABLE", help="A table, or DB.* for all; repeatable."
)


@click.group(cls=ListingGroup)
def agents() -> None:
    """Who may act through takeback, and on what.

    Without a command it lists them.
    """


@agents.command("add")
@click.argument("name")
@click.option("--root", "roots", multiple=True, metavar="DIR", help="A folder it may touch; repeatable.")
@click.option(
    "--table", "tables", multiple=True, metavar="DB.TABLE", help="A table it may touch; repeatable."
)
@click.option("--assistant", is_flag=True, help="It is the person's own assistant.")
@click.option("--expires", metavar="WHEN", help="When its token ends: a number of days, or a date and time.")
@with_shell
def add(
    shell: Shell,
    name: str,
    roots: tuple[str, ...],
    tables: tuple[str, ...],
    assistant: bool,
    expires: str | None,
) -> None:
    """Add an agent; its token is printed this once."""
    args = {"name": name, "roots": _folders(roots), "assistant": assistant}
    added = shell.call("agents.add", {**args, "tables": tables, "expires": _expiry(expires)})
    shell.answer(added, lambda: _show_token(shell, added))


@agents.command("list")
@with_shell
def list_agents(shell: Shell) -> None:
    """List the agents, revoked ones too."""
    found = shell.call("agents.list")["agents"]
    shell.answer({"agents": found}, lambda: _show(found))


@agents.command("rotate")
@_name
@with_shell
def rotate(shell: Shell, name: str) -> None:
    """Give an agent a new token; the old one ends at once."""
    rotated = shell.call("agents.rotate", {"name": name})
    shell.answer(rotated, lambda: _show_token(shell, rotated))


@agents.command("revoke")
@_name
@with_shell
def revoke(shell: Shell, name: str) -> None:
    """End an agent's token for good; what it did can still be taken back."""
    revoked = shell.call("agents.revoke", {"name": name})
    shell.answer(revoked, lambda: _show([revoked["agent"]]))


@agents.command("grant")
@_name
@_roots
@_tables
@with_shell
def grant(shell: Shell, name: str, roots: tuple[str, ...], tables: tuple[str, ...]) -> None:
    """Let an agent touch more folders, or tables of connected databases.

    It asks first, on a terminal.
    """
    # The question names the folder itself, and not a link that could lead elsewhere by the time of the yes.
    granted = call_present(
        shell, "agents.grant", _named(name, map(os.path.realpath, _folders(roots)), tables)
    )
    shell.answer(granted, lambda: _show([granted["agent"]]))


@agents.command("withdraw")
@_name
@_roots
@_tables
@with_shell
def withdraw(shell: Shell, name: str, roots: tuple[str, ...], tables: tuple[str, ...]) -> None:
    """Take folders or tables away from an agent."""
    inputs = _named(name, _folders(roots), tables)
    withdrawn = [shell.call("agents.withdraw", given) for given in inputs][-1]
    shell.answer(withdrawn, lambda: _show([withdrawn["agent"]]))


def _named(name: str, roots: Iterable[str], tables: Iterable[str]) -> list[dict[str, Any]]:
    named = [*({"root": root} for root in roots), *({"table": table} for table in tables)]
    if not named:
        raise click.UsageError("Name a folder with --root, or a table with --table.")
    return [{"name": name, **each} for each in named]


def _folders(roots: Iterable[str]) -> list[str]:
    # The daemon stands in another folder than the person does.
    return [os.path.abspath(os.path.expanduser(root)) for root in roots]


def _expiry(given: str | None) -> int | str | None:
    return int(given) if given is not None and given.isdecimal() else given


def _show(found: list[dict[str, Any]]) -> None:
    from takeback_doors.cli.screen import show_table, state

    rows = [
        (
            _called(agent),
            "\n".join([*agent["roots"], *agent["tables"]]) or "nothing yet",
            state(_standing(agent)),
        )
        for agent in found
    ]
    columns = ("Agent", "May touch", "State")
    show_table(columns, rows, wide="May touch", none="No agents yet: takeback agents add NAME --root DIR")


def _called(agent: dict[str, Any]) -> str:
    return f"{agent['name']} (assistant)" if agent["assistant"] else str(agent["name"])


def _standing(agent: dict[str, Any]) -> str:
    if agent["revoked"]:
        return "revoked"
    return "expired" if is_past(agent["expires"]) else "active"


def _show_token(shell: Shell, added: dict[str, Any]) -> None:
    from takeback_doors.cli.output import say

    name = added["agent"]["name"]
    if sys.stdout.isatty():
        say(f"The token of {name}. It is not shown again:")
        click.echo(added["token"])
    else:
        click.echo(added["token"])
        sys.stdout.flush()
        say(f"The token of {name} went where you sent it. It is not shown again.")
    door, why = shell.call_or_why("mcp.status")
    if door is None:
        say(f"No agent can come in yet. {why}.")
        return
    if door["url"]:
        say(f"An MCP client finds takeback at {door['url']} and sends it as: Authorization: Bearer TOKEN")
    else:
        say(f"Nobody can come in over HTTP. {door['problem']}")
    say("A client that starts its servers itself runs: takeback mcp --token-file FILE")
