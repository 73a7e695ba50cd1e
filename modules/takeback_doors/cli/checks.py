"""What `takeback doctor` looks at itself, with or without a daemon."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from takeback.home import Home
from takeback_doors.cli.database import database_finding
from takeback_doors.cli.findings import Finding
from takeback_doors.cli.sections import settings_findings

_OLDEST = (3, 11)
_LEAST_FREE = 256 * 1024 * 1024


def local_checks(home: Home, *, running: bool) -> Iterator[Finding]:
    """Everything that can be seen from outside: Python, folders, settings, disk, database, owner, socket."""
    yield _python()
    for name in ("config", "data", "state", "runtime"):
        yield _folder(name, getattr(home, name))
    settings, modules = settings_findings(home)
    yield from settings
    yield _disk(_existing(home.data))
    owner = _lock_owner(home.lock)
    if owner is None:
        # Whoever owns the home has the database open, and looks at it when asked.
        yield database_finding(home.database, modules.classes)
    yield _owner(owner, running=running)
    yield _socket(home.socket, running=running)
    if not running:
        yield _spool(home.data / "spool")


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    ok = sys.version_info >= _OLDEST
    return Finding("python", ok, f"Python {found}", "" if ok else "takeback needs Python 3.11 or later.")


def _folder(name: str, path: Path) -> Finding:
    try:
        found = path.stat()
    except FileNotFoundError:
        return Finding(f"home.{name}", True, f"{path} is not there yet")
    except OSError as error:
        return Finding(f"home.{name}", False, f"{path}: {error.strerror}", "Make the folder accessible.")
    if not stat.S_ISDIR(found.st_mode):
        return Finding(f"home.{name}", False, f"{path} is no folder", "Move away what is there.")
    if found.st_uid != os.geteuid():
        return Finding(f"home.{name}", False, f"{path} belongs to user {found.st_uid}", "Set TAKEBACK_HOME.")
    if found.st_mode & 0o077:
        return Finding(f"home.{name}", False, f"{path} is open to others", f"chmod 700 {path}")
    if not os.access(path, os.W_OK | os.X_OK):
        return Finding(f"home.{name}", False, f"{path} can't be written", f"chmod 700 {path}")
    return Finding(f"home.{name}", True, f"{path} is yours alone")


def _disk(path: Path) -> Finding:
    free = shutil.disk_usage(path).free
    detail = f"{free / 1e9:.1f} GB free at {path}"
    ok = free >= _LEAST_FREE
    return Finding("disk", ok, detail, "" if ok else "Make room, or run `takeback gc`.")


def _owner(owner: dict[str, Any] | None, *, running: bool) -> Finding:
    if owner is None:
        return Finding("owner", True, "No process owns the home")
    who = f"Process {owner.get('pid', 'unknown')} ({owner.get('command', 'unknown')}) owns the home"
    if running:
        return Finding("owner", True, who)
    return Finding("owner", False, f"{who}, but its socket does not answer", "Stop that process.")


def _lock_owner(path: Path) -> dict[str, Any] | None:
    try:
        with open(path, "rb") as lock:
            # A shared lock that is had at once and given back: it meets only an owner's.
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _parsed(lock.read(4096))
    except OSError:
        return None
    return None


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        owner = json.loads(text)
    except ValueError:
        return {}
    return owner if isinstance(owner, dict) else {}


def _socket(path: Path, *, running: bool) -> Finding:
    if running:
        return Finding("daemon", True, f"It answers on {path}")
    if os.path.lexists(path) and not path.is_socket():
        return Finding("daemon", False, f"{path} is no socket", "Move away what is there.")
    return Finding("daemon", True, "No daemon runs; a command that needs one starts it")


def _spool(folder: Path) -> Finding:
    """What agents' hooks kept while no daemon ran; a daemon that runs tells of it itself."""
    waiting = len(list(folder.glob("*.json")))
    if not waiting:
        return Finding("hook spool", True, "no event of an agent waits")
    detail = f"{waiting} events of agents wait in {folder}"
    return Finding("hook spool", False, detail, "Start the daemon, and they are taken in: `takeback log`.")


def _existing(path: Path) -> Path:
    while not os.path.exists(path):
        path = path.parent
    return path
