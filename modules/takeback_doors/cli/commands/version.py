"""`takeback version`"""

from __future__ import annotations

import platform

import click

from takeback import __version__
from takeback_doors.cli.shell import Shell, without_start


@click.command()
@without_start
def version(shell: Shell) -> None:
    """Say which takeback this is."""
    shape = {"version": __version__, "python": platform.python_version(), "platform": platform.platform()}
    shell.answer(shape, lambda: click.echo(f"takeback {__version__}"))
