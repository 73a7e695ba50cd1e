"""`takeback rows`"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from takeback_doors.cli.complete import database_names
from takeback_doors.cli.listing import ListingGroup
from takeback_doors.cli.output import say
from takeback_doors.cli.plain import visible
from takeback_doors.cli.shell import Shell, with_shell

_MOST_SHOWN = 12


@click.group(cls=ListingGroup)
def rows() -> None:
    """The databases that agents may be granted tables of.

    Without a command it lists them.
    """


@rows.command("list")
@with_shell
def list_databases(shell: Shell) -> None:
    """List the connected databases, without asking any of them."""
    found = shell.call("rows.databases")["databases"]
    shell.answer({"databases": found}, lambda: _show(found))


@rows.command("connect")
@click.argument("name")
@click.argument("url")
@with_shell
def connect(shell: Shell, name: str, url: str) -> None:
    """Connect a database under a name, and make takeback's journal in it.

    URL is sqlite:////full/path, the path of a SQLite file, postgresql://user:password@host/database, or - to
    read it from stdin, where no other program sees its password. Nothing that is there is changed.
    """
    connected = shell.call("rows.connect", {"name": name, "url": _url(url)})
    shell.answer(connected, lambda: _show_connected(connected))


@rows.command("disconnect")
@click.argument("name", shell_complete=database_names)
@click.option("--force", is_flag=True, help="Even if acts on it could still be taken back.")
@with_shell
def disconnect(shell: Shell, name: str, force: bool) -> None:
    """Let a database go, and take takeback's journal out of it."""
    gone = shell.call("rows.disconnect", {"name": name, "force": force})
    shell.answer(gone, lambda: _show_gone(gone))


def _url(given: str) -> str:
    text = sys.stdin.readline().strip() if given == "-" else given
    if not text:
        raise click.BadParameter("there is no URL", param_hint="URL")
    if "://" not in text:
        # The daemon stands in another folder than the person does.
        return f"sqlite:///{os.path.abspath(os.path.expanduser(text))}"
    return text


def _show(found: list[dict[str, Any]]) -> None:
    from takeback_doors.cli.screen import show_table

    rows = [(one["name"], one["engine"], one["url"]) for one in found]
    show_table(
        ("Database", "Engine", "URL"), rows, wide="URL", none="No databases: takeback rows connect NAME URL"
    )


def _show_connected(connected: dict[str, Any]) -> None:
    database = connected["database"]
    tables = database["tables"]
    more = f" and {len(tables) - _MOST_SHOWN} more" if len(tables) > _MOST_SHOWN else ""
    say(f"{database['name']} is connected; what is done to these tables can be taken back:")
    say(visible(f"  {', '.join(tables[:_MOST_SHOWN])}{more}"))
    for note in connected["notes"]:
        say(visible(note))
    say(f"An agent may touch none yet: takeback agents grant NAME --table {database['name']}.TABLE")


def _show_gone(gone: dict[str, Any]) -> None:
    say(f"{gone['name']} is let go.")
    if gone["warning"]:
        say(visible(gone["warning"]))
