"""Where the home is, asked once a run."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from takeback.errors import TakebackError
from takeback.home import Home


@cache
def home() -> Home:
    """The home that the environment names: TAKEBACK_HOME, or the platform's own folders.

    Raises `home.unsafe` when the folder for sockets was prepared by somebody else.
    """
    try:
        return Home.of(os.environ)
    except PermissionError as error:
        hint = "Set XDG_RUNTIME_DIR or TAKEBACK_HOME to a folder of your own."
        raise TakebackError("home.unsafe", f"There is no safe place for sockets: {error}", hint) from None


def client_log() -> Path:
    """The file that a failing client writes its trace to; the daemon's own is beside it."""
    return home().state / "client.log"


def daemon_log() -> Path:
    """The file that a daemon in the background logs to."""
    return home().state / "daemon.log"
