"""The way between folders, from a root down. Stands alone, on the stdlib.

Everything is opened relative to the folder above it, and links are never followed. The depth of a tree costs
neither recursion nor descriptors.
"""

from __future__ import annotations

import errno
import os

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_HELD = 64


class MovedError(OSError):
    """A folder on the way is not where it was a moment ago."""


class Way:
    """The folders from a root down to where a walk stands; only the last of them are held open."""

    def __init__(self, root: int) -> None:
        self._fds = [os.dup(root)]
        self._names: list[bytes] = [b""]
        self._marks = [_identity(os.fstat(root))]

    @property
    def depth(self) -> int:
        """How far below the root the walk stands."""
        return len(self._fds) - 1

    @property
    def fd(self) -> int:
        """The open folder where the walk stands."""
        return self._fds[-1]

    def down(self, name: bytes) -> os.stat_result:
        """Enters a folder of this one; raises OSError."""
        handle = os.open(name, FOLDER, dir_fd=self._fds[-1])
        try:
            found = os.fstat(handle)
        except BaseException:
            os.close(handle)
            raise
        self._fds.append(handle)
        self._names.append(name)
        self._marks.append(_identity(found))
        # The root stays open; of the others only the last few.
        far = len(self._fds) - 1 - _HELD
        if far > 0 and self._fds[far] >= 0:
            os.close(self._fds[far])
            self._fds[far] = -1
        return found

    def up(self, depth: int) -> None:
        """Climbs to a depth above.

        Raises MovedError when the folders there are others by now; the walk then stands further up, in the
        nearest one that is still held open.
        """
        while self.depth > depth:
            if self._fds[-2] < 0:
                try:
                    self._fds[-2] = self._above(self.depth - 1)
                except MovedError:
                    self._pop()
                    while self.fd < 0:
                        self._pop()
                    raise
            self._pop()

    def close(self) -> None:
        """Lets go of every folder."""
        for handle in self._fds:
            if handle >= 0:
                os.close(handle)
        self._fds.clear()

    def _pop(self) -> None:
        handle = self._fds.pop()
        if handle >= 0:
            os.close(handle)
        self._names.pop()
        self._marks.pop()

    def _above(self, depth: int) -> int:
        try:
            return _checked(os.open(b"..", FOLDER, dir_fd=self._fds[-1]), self._marks[depth])
        except OSError:
            return self._again(depth)

    def _again(self, depth: int) -> int:
        here = os.dup(self._fds[0])
        for level in range(1, depth + 1):
            try:
                below = os.open(self._names[level], FOLDER, dir_fd=here)
            except OSError as error:
                raise MovedError(*error.args) from None
            finally:
                os.close(here)
            here = _checked(below, self._marks[level])
        return here


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _checked(handle: int, expected: tuple[int, int]) -> int:
    if _identity(os.fstat(handle)) == expected:
        return handle
    os.close(handle)
    raise MovedError(errno.ENOENT, "not where it was")
