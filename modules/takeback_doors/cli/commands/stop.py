"""`takeback stop`"""

from __future__ import annotations

import os
import signal

import click

from takeback.errors import TakebackError
from takeback_doors.cli.output import say
from takeback_doors.cli.process import wait_for_exit
from takeback_doors.cli.shell import Shell, without_start

_SECONDS = 30.0


@click.command()
@without_start
def stop(shell: Shell) -> None:
    """Stop the daemon; what it is doing is finished first."""
    daemon = shell.running()
    if daemon is None:
        shell.answer({"stopped": False}, lambda: say("No daemon was running."))
        return
    pid = daemon.peer()
    daemon.close()
    _end(pid)
    shell.answer({"stopped": True, "pid": pid}, lambda: say("The daemon has stopped."))


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    if not wait_for_exit(pid, _SECONDS):
        raise TakebackError(
            "daemon.busy",
            f"The daemon, process {pid}, was told to stop and still runs",
            "It finishes what it has begun. Look again with `takeback status`.",
            retryable=True,
        )
