"""Spare: what the gate does where no daemon answers. It keeps the event, and starts a daemon.

What a tool will change is kept as it is now, within limits, since nobody can look later. A command can't be
kept that way, so for one the gate waits a moment for the daemon. It imports nothing of takeback's.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import runpy
import stat
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Callable
from typing import Any

_START_SECONDS = 8.0
_AGAIN_SECONDS = 0.02
_LARGEST_IMAGE = 4 << 20
_LARGEST_EVENT = 8 << 20
_MOST_BYTES = 512 << 20
_NOT_INHERITED = ("TAKEBACK_TOKEN",)
_EVENT_NAMES = ("hook_event_name", "hookEventName", "event", "type")
_INPUTS = ("tool_input", "toolInput", "args", "input")

HandOver = Callable[[str, str, bytes], bool]


def keep(agent: str, path: str, spool: str, home: str, event: bytes, hand_over: HandOver) -> None:
    """Start a daemon, and give it the event if it is there soon enough; else spool it."""
    at = time.time_ns()
    parsed = _parsed(event)
    images = _images(parsed)
    os.makedirs(spool, 0o700, exist_ok=True)
    starting = _start(spool, home)
    # Each way the pre-image is as it was before the tool; what runs freely is only seen by a daemon.
    if not images and _comes_before(parsed) and _wait(starting, lambda: hand_over(agent, path, event)):
        return
    _spool(spool, {"agent": agent, "at": at, "images": images, "event": _text(event)})


def _parsed(event: bytes) -> dict[str, Any]:
    try:
        found = json.loads(event)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(event: bytes) -> str:
    return event.decode(errors="replace") if len(event) <= _LARGEST_EVENT else ""


def _comes_before(event: dict[str, Any]) -> bool:
    names = [event[key].lower() for key in _EVENT_NAMES if isinstance(event.get(key), str)]
    return any(name.startswith(("pre", "before")) or name.endswith(".before") for name in names)


def _images(event: dict[str, Any]) -> list[dict[str, Any]]:
    """What lies now at the paths that the event names."""
    rules = runpy.run_path(os.path.join(os.path.dirname(__file__), "named.py"))
    given = next((event[key] for key in _INPUTS if key in event), event)
    cwd = event.get("cwd")
    folder = cwd if isinstance(cwd, str) else os.getcwd()
    paths = [os.path.realpath(os.path.join(folder, path)) for path in rules["named"](given)]
    return [image for path in paths if (image := _image(path))]


def _image(path: str) -> dict[str, Any] | None:
    """A file's bytes, or that nothing is there; None for what can't be kept here."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        return {"path": path, "content_base64": None}
    except OSError:
        return None
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST_IMAGE:
            return None
        data = file.read(_LARGEST_IMAGE + 1)
    if len(data) > _LARGEST_IMAGE:
        return None
    mode = stat.S_IMODE(found.st_mode)
    kept = b64encode(data).decode()
    return {"path": path, "content_base64": kept, "mode": mode, "mtime_ns": found.st_mtime_ns}


def _start(spool: str, home: str) -> Callable[[], bool]:
    """Start a daemon unless one is starting; answers what tells whether there is still hope of it."""
    lock = os.open(os.path.join(spool, "starting"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return lambda: not _is_free(lock)
    environ = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    if home:
        environ["TAKEBACK_HOME"] = home
    serve = [sys.executable, "-P", "-m", "takeback_doors.cli", "serve", "--background"]
    # The daemon holds the lock as long as it lives, so that nobody starts another meanwhile.
    with open(os.path.join(spool, "daemon.log"), "wb") as log:
        daemon = subprocess.Popen(
            serve,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environ,
            cwd="/",
            pass_fds=[lock],
            start_new_session=True,
        )
    return lambda: daemon.poll() is None


def _is_free(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _wait(may_come: Callable[[], bool], try_it: Callable[[], bool]) -> bool:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        hope = may_come()
        if try_it():
            return True
        if not hope:
            return False
        time.sleep(_AGAIN_SECONDS)
    return False


def _spool(spool: str, entry: dict[str, Any]) -> None:
    """Keep an event in a file of its own, whole or not at all."""
    data = json.dumps(entry).encode()
    with os.scandir(spool) as found:
        if len(data) + sum(one.stat().st_size for one in found) > _MOST_BYTES:
            return
    name = os.path.join(spool, f"{entry['at']:020d}-{os.getpid()}")
    handle = os.open(f"{name}.part", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        os.rename(f"{name}.part", f"{name}.json")
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(f"{name}.part")
