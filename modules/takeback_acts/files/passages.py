"""Passages: folders that their owner has shut, open for as long as somebody looks at what they hold.

Without it a command could hide what it did by shutting the folder behind itself. Only what is its own does
this process open, and only to its own user.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from typing import NamedTuple

from takeback_acts.files.beneath import Spot, set_mode

_NEEDED = stat.S_IRUSR | stat.S_IXUSR
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST = 200


class _Open(NamedTuple):
    handle: int
    mode: int
    users: int


# What is open now, by device and inode: whoever looks meanwhile is told the mode that it really has.
_open: dict[tuple[int, int], _Open] = {}
_lock = threading.Lock()


def is_shut(mode: int) -> bool:
    """Whether a folder's own user can't look into it."""
    return mode & _NEEDED != _NEEDED


def true_mode(found: os.stat_result) -> int:
    """The mode of a stat as it would be if the folder had not been opened here."""
    known = _open.get((found.st_dev, found.st_ino))
    return found.st_mode if known is None else stat.S_IFDIR | known.mode


def is_set(found: os.stat_result, mode: int) -> None:
    """Notes that a folder was given this mode for good, so that nobody shuts it again."""
    key = found.st_dev, found.st_ino
    with _lock:
        if key in _open:
            _open[key] = _open[key]._replace(mode=mode)


class Passages:
    """The folders that one look has opened; they are shut again by `close`. Calls block."""

    def __init__(self) -> None:
        self._own: list[tuple[int, int]] = []

    def open(self, folder: int, name: bytes) -> bool:
        """Opens a folder in another one, when it is shut; answers whether it did. Raises OSError."""

        def let_in(found: os.stat_result, mode: int) -> int:
            set_mode(Spot(folder, name, name), found, mode)
            return os.open(name, _FOLDER, dir_fd=folder)

        return self._open(os.stat(name, dir_fd=folder, follow_symlinks=False), let_in)

    def open_handle(self, folder: int) -> bool:
        """The same for a folder that was open before it was shut."""

        def let_in(_: os.stat_result, mode: int) -> int:
            os.fchmod(folder, mode)
            return os.dup(folder)

        return self._open(os.fstat(folder), let_in)

    def _open(self, found: os.stat_result, let_in: Callable[[os.stat_result, int], int]) -> bool:
        key = found.st_dev, found.st_ino
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or os.geteuid() == 0:
            return False
        with _lock:
            known = _open.get(key)
            if key in self._own or len(self._own) >= _MOST or (known is None and not is_shut(found.st_mode)):
                return False
            if known is None:
                mode = stat.S_IMODE(found.st_mode)
                known = _Open(let_in(found, mode | _NEEDED), mode, 0)
            _open[key] = known._replace(users=known.users + 1)
            self._own.append(key)
        return True

    def close(self) -> None:
        """Shuts them again, unless somebody has set their mode meanwhile."""
        with _lock:
            while self._own:
                key = self._own.pop()
                known = _open[key]
                if known.users > 1:
                    _open[key] = known._replace(users=known.users - 1)
                    continue
                try:
                    if stat.S_IMODE(os.fstat(known.handle).st_mode) == known.mode | _NEEDED:
                        os.fchmod(known.handle, known.mode)
                finally:
                    del _open[key]
                    os.close(known.handle)
