"""`takeback mcp`"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import click

from takeback.errors import RefusedError, TakebackError, UsageError
from takeback_doors.cli.place import use_home
from takeback_doors.cli.shell import Shell, with_shell

_LONGEST = 4096


@click.command()
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The agent's token; a file that is yours alone. Else TAKEBACK_TOKEN.",
)
@click.option(
    "--home",
    "folder",
    metavar="DIR",
    help="As TAKEBACK_HOME, which many clients do not pass on.",
)
@with_shell
def mcp(shell: Shell, token_file: Path | None, folder: str | None) -> int:
    """Speak MCP on stdin and stdout.

    It is for clients that start their servers themselves. It starts the daemon when none runs.
    """
    token = _read(token_file) if token_file else os.environ.get("TAKEBACK_TOKEN", "").strip()
    if not token:
        raise UsageError(
            "mcp.no_token",
            "No agent's token was given",
            "Make one with `takeback agents add NAME`, then use --token-file or TAKEBACK_TOKEN.",
        )
    if folder:
        use_home(folder)
    door = _door(shell)
    from takeback_doors.mcp.bridge import main as bridge

    return bridge(door, token)


def _door(shell: Shell) -> str:
    with shell.daemon():
        status, why = shell.call_or_why("mcp.status")
    if status is None:
        raise TakebackError(
            "mcp.off",
            f"The agents' door is not open: {why}",
            "`takeback modules enable mcp` opens it, if you want it open.",
            retryable=True,
        )
    return str(status["socket"])


def _read(path: Path) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise UsageError("mcp.token_file", f"The token file {path} can't be read: {error.strerror}") from None
    try:
        _require_own(path, os.fstat(handle))
        return os.read(handle, _LONGEST).decode("ascii", "replace").strip()
    finally:
        os.close(handle)


def _require_own(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UsageError("mcp.token_file", f"{path} is no file")
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise RefusedError(
            "mcp.token_open", f"Others can read or own the token file {path}", f"Run: chmod 600 {path}"
        )
