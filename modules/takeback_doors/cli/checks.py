"""What `takeback doctor` looks at itself, with or without a daemon."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from takeback.errors import TakebackError
from takeback.home import Home
from takeback.settings import load_settings

_OLDEST = (3, 11)
_LEAST_FREE = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    hint: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The check as JSON values."""
        return asdict(self)


def local_checks(home: Home, *, running: bool) -> Iterator[Check]:
    """Everything that can be seen from outside: Python, folders, settings, disk, owner, socket."""
    yield _python()
    for name in ("config", "data", "state", "runtime"):
        yield _folder(name, getattr(home, name))
    yield _settings(home)
    yield _disk(_existing(home.data))
    yield _owner(home, running=running)
    yield _socket(home.socket, running=running)


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    ok = sys.version_info >= _OLDEST
    return Check("python", ok, f"Python {found}", "" if ok else "takeback needs Python 3.11 or later.")


def _folder(name: str, path: Path) -> Check:
    try:
        found = path.stat()
    except FileNotFoundError:
        return Check(f"home.{name}", True, f"{path} is not there yet")
    except OSError as error:
        return Check(f"home.{name}", False, f"{path}: {error.strerror}", "Make the folder accessible.")
    if not stat.S_ISDIR(found.st_mode):
        return Check(f"home.{name}", False, f"{path} is no folder", "Move away what is there.")
    if found.st_uid != os.geteuid():
        return Check(f"home.{name}", False, f"{path} belongs to user {found.st_uid}", "Set TAKEBACK_HOME.")
    if found.st_mode & 0o077:
        return Check(f"home.{name}", False, f"{path} is open to others", f"chmod 700 {path}")
    if not os.access(path, os.W_OK | os.X_OK):
        return Check(f"home.{name}", False, f"{path} can't be written", f"chmod 700 {path}")
    return Check(f"home.{name}", True, f"{path} is yours alone")


def _settings(home: Home) -> Check:
    try:
        load_settings(home, os.environ)
    except TakebackError as error:
        return Check("settings", False, error.message, error.hint)
    if not home.settings.exists():
        return Check("settings", True, f"{home.settings} is not there; everything has its default")
    return Check("settings", True, f"{home.settings} can be read")


def _disk(path: Path) -> Check:
    free = shutil.disk_usage(path).free
    detail = f"{free / 1e9:.1f} GB free at {path}"
    ok = free >= _LEAST_FREE
    return Check("disk", ok, detail, "" if ok else "Make room, or run `takeback gc`.")


def _owner(home: Home, *, running: bool) -> Check:
    owner = _lock_owner(home.lock)
    if owner is None:
        return Check("owner", True, "No process owns the home")
    who = f"Process {owner.get('pid', 'unknown')} ({owner.get('command', 'unknown')}) owns the home"
    if running:
        return Check("owner", True, who)
    return Check("owner", False, f"{who}, but its socket does not answer", "Stop that process.")


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


def _socket(path: Path, *, running: bool) -> Check:
    if running:
        return Check("daemon", True, f"It answers on {path}")
    if os.path.lexists(path) and not path.is_socket():
        return Check("daemon", False, f"{path} is no socket", "Move away what is there.")
    return Check("daemon", True, "No daemon runs; a command that needs one starts it")


def _existing(path: Path) -> Path:
    while not os.path.exists(path):
        path = path.parent
    return path
