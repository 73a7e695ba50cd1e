"""`takeback serve`"""

from __future__ import annotations

import gc
import logging
import os
from contextlib import suppress

import click

from takeback.errors import TakebackError
from takeback.home import Home
from takeback_doors.cli.client import try_connect
from takeback_doors.cli.output import internal, say
from takeback_doors.cli.place import home
from takeback_doors.cli.ready import Ready

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@click.command()
@click.option(
    "--ready-fd", type=int, metavar="N", help="Write one line of JSON to this descriptor when ready."
)
@click.option("--verbose", "-v", is_flag=True, help="Log what happens, not only what goes wrong.")
@click.option("--background", is_flag=True, hidden=True)
def serve(ready_fd: int | None, verbose: bool, background: bool) -> None:
    """Run the daemon here, until Ctrl-C or `takeback stop`."""
    gc.enable()
    place = home()
    logging.basicConfig(level=logging.INFO if verbose or background else logging.WARNING, format=_FORMAT)
    if background:
        _leave_terminal()
    elif ready_fd is None:
        _refuse_second(place)
    ready = Ready(ready_fd)
    try:
        _run(place, ready)
    except TakebackError as error:
        ready.failed(error)
        raise
    except Exception as error:
        ready.failed(internal(error))
        raise


def _run(place: Home, ready: Ready) -> None:
    # Everything heavy comes in here, and what it says while being imported is reported like the rest.
    from takeback_doors.cli.daemon import run

    def opened(ours: bool, address: str) -> None:
        ready.opened(str(place.socket), already=not ours)
        if ours:
            say(f"takeback is ready on {place.socket}{f' and {address}' if address else ''}")

    run(place, opened)


def _leave_terminal() -> None:
    # A closed terminal must not end the daemon, and the folder it was started in can still be unmounted.
    with suppress(PermissionError):
        os.setsid()
    os.chdir("/")


def _refuse_second(place: Home) -> None:
    if other := try_connect(place.socket):
        with other:
            raise TakebackError(
                "daemon.running",
                f"A daemon already serves this home: process {other.peer()}",
                "Use it, or stop it with `takeback stop`.",
            )
