"""`takeback gate`"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import NoReturn

import click

from takeback_doors.cli.place import home


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--agent", metavar="NAME", default="", help="Whose event it is.")
@click.argument("more", nargs=-1, type=click.UNPROCESSED)
def gate(agent: str, more: tuple[str, ...]) -> NoReturn:
    """Hand one event of an agent's hook, on standard input, to the daemon.

    It says nothing and ends well whatever happens. `takeback connect` writes the same, without the way
    through this command, into an agent's settings.
    """
    try:
        _become(agent)
    except Exception:
        # An agent must never stumble over its hook.
        os._exit(0)


def _become(agent: str) -> NoReturn:
    spec = find_spec("takeback_doors.hooks.gate")
    places = list(spec.submodule_search_locations or ()) if spec else []
    script, here = os.path.join(places[0], "gate.py"), home()
    named = os.environ.get("TAKEBACK_HOME")
    arguments = [script, agent, str(here.runtime / "gate.sock"), str(here.data / "spool")]
    if named:
        arguments.append(os.path.abspath(named))
    os.execv(sys.executable, [sys.executable, "-I", "-S", *arguments])  # noqa: S606 - no shell is wanted
