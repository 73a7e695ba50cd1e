"""`takeback demo`"""

from __future__ import annotations

import click

from takeback.errors import TakebackError


@click.command()
def demo() -> None:
    """Let an agent loose on a sample folder, and take back what it did.

    Everything happens in a temporary folder with a daemon of its own, and is removed at the end.
    """
    from takeback_doors.cli.demo.afterwards import afterwards
    from takeback_doors.cli.demo.promise import BrokenPromiseError
    from takeback_doors.cli.demo.story import Story

    try:
        Story(click.echo).tell()
    except BrokenPromiseError as broken:
        hint = "`takeback doctor` may know why."
        raise TakebackError("demo.broken", f"Not as promised: {broken}", hint) from None
    click.echo("\n" + "\n".join(afterwards()))
