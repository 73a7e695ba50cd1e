"""One process owns a home: a file lock that the system gives back when its owner dies."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from takeback.errors import TakebackError
from takeback.home import Home, unusable
from takeback.moments import stamp

_HELD = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}


class HomeLock:
    """The ownership of a home, from `acquire` to `release` or the end of the process.

    The lock belongs to an open file and not to a process id, so a killed owner leaves nothing behind, and
    the same process can't own a home twice.
    """

    def __init__(self, handles: list[int]) -> None:
        self._handles = handles

    @classmethod
    def acquire(cls, home: Home) -> HomeLock:
        """Takes the home, whose folders must exist.

        Raises `home.locked` (its data: `pid, command, since`), `home.readonly` and `home.unusable`.
        """
        lock = cls([])
        try:
            lock._take(home)
        except BaseException as error:
            lock._close()
            if isinstance(error, OSError):
                raise unusable(home.lock, error) from error
            raise
        return lock

    def release(self) -> None:
        """Gives the home back. A second release does nothing."""
        if self._handles:
            # The file stays: deleting it would let two processes lock two files of one name.
            os.ftruncate(self._handles[0], 0)
        self._close()

    def __enter__(self) -> HomeLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _take(self, home: Home) -> None:
        file = _open(home.lock)
        self._handles.append(file)
        if not _flock(file):
            raise _locked(home, _read_owner(file))
        # The folder as well, for a person or a cleaner who deletes the file while its owner lives.
        folder = os.open(home.state, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._handles.append(folder)
        with contextlib.suppress(OSError):  # some network file systems lock files alone
            if not _flock(folder):
                raise _locked(home, {})
        _write_owner(file)

    def _close(self) -> None:
        while self._handles:
            os.close(self._handles.pop())


def _open(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if os.fstat(handle).st_mode & 0o077:
        os.fchmod(handle, 0o600)
    return handle


def _flock(handle: int) -> bool:
    """Whether the handle has the lock now; False when another one has it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True


def _write_owner(handle: int) -> None:
    owner = {
        "pid": os.getpid(),
        "command": _command(),
        "since": stamp(),
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
