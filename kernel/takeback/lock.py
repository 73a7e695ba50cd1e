"""One process owns a home: a file lock that the system gives back when its owner dies."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from takeback.errors import TakebackError
from takeback.home import Home, unusable

_HELD = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}


class HomeLock:
    """The ownership of a home, from `acquire` to `release` or the end of the process.

    The lock belongs to an open file and not to a process id, so a killed owner leaves nothing behind, and
    the same process can't own a home twice.
    """

    def __init__(self, handle: int) -> None:
        self._handle: int | None = handle

    @classmethod
    def acquire(cls, home: Home) -> HomeLock:
        """Takes the home, whose folders must exist.

        Raises `home.locked` (its data: `pid, command, since`), `home.readonly` and `home.unusable`.
        """
        try:
            handle = _open(home.lock)
        except OSError as error:
            raise unusable(home.lock, error) from error
        try:
            _take(handle, home)
            _write_owner(handle)
        except OSError as error:
            os.close(handle)
            raise unusable(home.lock, error) from error
        except BaseException:
            os.close(handle)
            raise
        return cls(handle)

    def release(self) -> None:
        """Gives the home back. A second release does nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            # The file stays: deleting it would let two processes lock two files of one name.
            os.ftruncate(handle, 0)
            os.close(handle)

    def __enter__(self) -> HomeLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _open(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if os.fstat(handle).st_mode & 0o077:
        os.fchmod(handle, 0o600)
    return handle


def _take(handle: int, home: Home) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            raise _locked(home, _read_owner(handle)) from None
        raise


def _write_owner(handle: int) -> None:
    owner = {
        "pid": os.getpid(),
        "command": _command(),
        "since": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(owner).encode(), 0)


def _read_owner(handle: int) -> dict[str, Any]:
    """What the owner wrote; empty in the moment before it has."""
    try:
        owner = json.loads(os.pread(handle, 4096, 0))
    except ValueError:
        return {}
    return owner if isinstance(owner, dict) else {}


def _command() -> str:
    """The program and its command word. Arguments beyond it may hold what is the person's alone."""
    program = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    return f"{program} {word}" if re.fullmatch(r"[a-z][a-z-]{0,30}", word) else program


def _locked(home: Home, owner: dict[str, Any]) -> TakebackError:
    who = "another process"
    if owner:
        who = f"process {owner.get('pid')} ({owner.get('command')}), since {owner.get('since')}"
    return TakebackError(
        "home.locked",
        f"The home with {home.data} is in use by {who}.",
        "Use the running one, or stop it first; the lock ends with its process.",
        retryable=True,
        data=owner,
    )
