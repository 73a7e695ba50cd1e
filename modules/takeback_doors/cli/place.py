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


def client_log() -> Path:
    """The file that a failing client writes its trace to; the daemon's own is beside it."""
    return home().state / "client.log"


def daemon_log() -> Path:
    """The file that a daemon in the background logs to."""
    return home().state / "daemon.log"
