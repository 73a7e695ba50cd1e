"""Where the home is, asked once a run."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from takeback.home import Home


@cache
def home() -> Home:
    """The home that the environment names: TAKEBACK_HOME, or the platform's own folders."""
    return Home.of(os.environ)


def use_home(folder: str) -> None:
    """Let `home` answer with a folder from now on, and a daemon that is started serve it."""
    os.environ["TAKEBACK_HOME"] = os.path.abspath(os.path.expanduser(folder))
    home.cache_clear()


def client_log() -> Path:
    """The file that a failing client writes its trace to; the daemon's own is beside it."""
    return home().state / "client.log"


def daemon_log() -> Path:
    """The file that a daemon in the background logs to."""
    return home().state / "daemon.log"
