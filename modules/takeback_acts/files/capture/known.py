"""Known: a folder as it was, and which of its names are not so any more. Stands alone, on the stdlib."""

from __future__ import annotations

import os
from array import array
from typing import NamedTuple, Protocol

from takeback_acts.files.capture.marks import COLUMNS, INODE, Own

_SLICE = 1024


class Differing(NamedTuple):
    """Names in a folder that differ, and names that are gone. What can't be looked at differs."""

    altered: list[bytes]
    gone: list[bytes]


class Before(Protocol):
    """A folder as it was: its own mark, whether that mark can be trusted, and what lies in it but folders.

    `names` has a `/` behind each name, `marks` five numbers a name.
    """

    @property
    def own(self) -> Own: ...
    @property
    def settled(self) -> bool: ...
    @property
    def names(self) -> bytes: ...
    @property
    def marks(self) -> array[int]: ...

    def differing(self, folder: int) -> Differing:
        """How the open folder's known names are now; raises OSError."""
        ...


class Known(NamedTuple):
    """A folder as it was, compared by one stat after the other."""

    own: Own
    settled: bool
    names: bytes
    marks: array[int]

    def differing(self, folder: int) -> Differing:
        """How the open folder's known names are now."""
        found = Differing([], [])
        names = self.names.split(b"/")
        names.pop()
        for start in range(0, len(names), _SLICE):
            part = names[start : start + _SLICE]
            _compare(folder, part, self.marks[start * COLUMNS : (start + _SLICE) * COLUMNS], found)
        return found


def classify(folder: int, name: bytes, found: Differing) -> None:
    """Tells a name that has no stat any more, or an unexpected one, from one that is gone."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        found.gone.append(name)
    except OSError:
        # Not that it is there, nor that it is not: whoever examines it says what he finds.
        found.altered.append(name)
    else:
        found.altered.append(name)


def _compare(folder: int, names: list[bytes], marks: array[int], differing: Differing) -> None:
    flat: list[int] = []
    for name in names:
        try:
            s = os.stat(name, dir_fd=folder, follow_symlinks=False)
            flat += (s.st_mode, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
        except OSError:
            flat += (0, 0, 0, 0, 0)
    found = _packed(flat)
    if found == marks:
        return
    for at, name in zip(range(0, len(flat), COLUMNS), names, strict=True):
        if found[at : at + COLUMNS] != marks[at : at + COLUMNS]:
            classify(folder, name, differing)


def _packed(flat: list[int]) -> array[int]:
    try:
        return array("q", flat)
    except OverflowError:
        return array("q", [number & INODE if number > INODE else number for number in flat])
