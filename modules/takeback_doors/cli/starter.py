"""Starting a daemon in the background, for a command that found none."""

from __future__ import annotations

import os
import select
import sys
import time
from pathlib import Path

from takeback.errors import TakebackError
from takeback.home import Home, unusable
from takeback_doors.cli.client import Connection, try_connect
from takeback_doors.cli.wire import decode_answer

_DEADLINE = 30.0
_LARGEST_LOG = 4 * 1024 * 1024
# A daemon outlives the command that started it, so it must not keep what was meant for that one alone.
_NOT_INHERITED = {"TAKEBACK_TOKEN"}


def start(home: Home, log: Path, seconds: float = _DEADLINE) -> Connection:
    """Start a daemon, wait until its doors answer, and connect to it.

    Several at once are fine: one daemon comes of it. Raises what kept the daemon from starting,
    `daemon.died` when it could not even say that, and `daemon.slow`.
    """
    home.create()
    output = _open_log(log)
    reading, writing = os.pipe()
    try:
        os.set_inheritable(writing, True)
        child = _spawn(writing, output)
    finally:
        os.close(writing)
        os.close(output)
    try:
        _wait(reading, child, log, time.monotonic() + seconds)
    finally:
        os.close(reading)
    return try_connect(home.socket) or _died(log)


def _spawn(ready: int, output: int) -> int:
    serve = ["-P", "-m", "takeback_doors.cli", "serve", "--background", "--ready-fd", str(ready)]
    streams = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, output, 2),
    ]
    environ = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    return os.posix_spawn(sys.executable, [sys.executable, *serve], environ, file_actions=streams)


def _wait(reading: int, child: int, log: Path, until: float) -> None:
    line = b""
    while not line.endswith(b"\n"):
        if not select.select([reading], [], [], max(0.0, until - time.monotonic()))[0]:
            raise TakebackError(
                "daemon.slow",
                f"The daemon, process {child}, is not ready yet",
                f"It may be busy with a large log. Try again soon; it writes to {log}.",
                retryable=True,
            )
        part = os.read(reading, 65536)
        if not part:
            os.waitpid(child, 0)
            _died(log)
        line += part
    answer = decode_answer(line)
    if not answer["ok"]:
        raise TakebackError.from_dict(answer["error"])


def _died(log: Path) -> Connection:
    raise TakebackError(
        "daemon.died", "The daemon ended before its doors answered", f"Its last words are in {log}."
    )


def _open_log(log: Path) -> int:
    try:
        if log.is_file() and log.stat().st_size > _LARGEST_LOG:
            log.replace(log.with_suffix(".log.1"))
        return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unusable(log, error) from None
