"""Columns: a folder as it was, compared a whole column of its stats at once. Stands alone, on the stdlib.

A stat as an object of Python's costs as much again as the call itself. So the system writes into one buffer,
and what stands there is compared as it is. That is for a process that does nothing else: its working folder
moves along.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

from takeback_acts.files.capture.known import Differing, classify
from takeback_acts.files.capture.marks import COLUMNS, INODE, Own, mark

_SLICE = 1024
_SECOND = 1_000_000_000


class _Layout(NamedTuple):
    """How long the system's stat is, in words of eight bytes, and in which half word the mode stands."""

    words: int
    mode: int


_LAYOUTS = {"x86_64": _Layout(18, 6), "aarch64": _Layout(16, 4), "riscv64": _Layout(16, 4)}
# Inode, size, and the times in seconds and nanoseconds: where all of these layouts have them.
_WORDS = (1, 6, 11, 12, 13, 14)


class UnknownLayoutError(Exception):
    """How this system writes a stat is not known."""


class Stats:
    """The stats of many names, in columns. Raises UnknownLayoutError where they can't be had so."""

    def __init__(self) -> None:
        layout = _LAYOUTS.get(platform.machine()) if sys.platform == "linux" else None
        if layout is None or sys.maxsize < INODE:
            raise UnknownLayoutError
        self._layout = layout
        self._words = array("q", bytes(8 * layout.words * _SLICE))
        self._halves = memoryview(self._words).cast("B").cast("I")
        held = (ctypes.c_char * (8 * layout.words * _SLICE)).from_buffer(self._words)
        self._places = [ctypes.byref(held, 8 * layout.words * at) for at in range(_SLICE)]
        self._lstat = _function()
        self._check()

    def look(self, names: list[bytes]) -> tuple[list[array[int]], list[int]]:
        """The columns of names of the working folder, a slice at most; and which of them have no stat."""
        failed = list(map(self._lstat, names, self._places))
        words, end = self._layout.words, self._layout.words * len(names)
        columns = [self._words[word:end:words] for word in _WORDS]
        modes = array("I", self._halves[self._layout.mode : 2 * end : 2 * words].tolist())
        return [modes, *columns], [at for at, code in enumerate(failed) if code] if any(failed) else []

    def _check(self) -> None:
        names = [b"/", b"/proc/self", os.fsencode(os.__file__), os.fsencode(sys.executable)]
        for _ in range(3):
            found = [mark(os.lstat(name)) for name in names]
            if of_columns(self.look(names)[0]) == array("q", [number for one in found for number in one]):
                return
        raise UnknownLayoutError


class Columns:
    """A folder as it was, in columns: modes, inodes, sizes, and both times in two columns each."""

    def __init__(self, stats: Stats, own: Own, settled: bool, names: bytes, marks: array[int]) -> None:
        self._stats = stats
        self.own, self.settled, self.names = own, settled, names
        self._columns = to_columns(marks)

    @property
    def marks(self) -> array[int]:
        """Five numbers a name."""
        return of_columns(self._columns)

    def differing(self, folder: int) -> Differing:
        """How the open folder's known names are now; raises OSError. The working folder moves there."""
        found = Differing([], [])
        names = self.names.split(b"/")
        names.pop()
        os.fchdir(folder)
        for start in range(0, len(names), _SLICE):
            part = names[start : start + _SLICE]
            known = [column[start : start + _SLICE] for column in self._columns]
            for at in self._differ(part, known):
                classify(folder, part[at], found)
        return found

    def _differ(self, names: list[bytes], known: list[array[int]]) -> list[int]:
        columns, failed = self._stats.look(names)
        if columns == known and not failed:
            return []
        if min(columns[1]) < 0:
            columns[1] = array("q", [inode & INODE for inode in columns[1]])
        differing = set(failed)
        for was, now in zip(known, columns, strict=True):
            if was != now:
                differing.update(at for at in range(len(names)) if was[at] != now[at])
        return sorted(differing)


def to_columns(marks: array[int]) -> list[array[int]]:
    """Marks as the columns that the system's stats are compared with."""
    modes, inodes, sizes, mtimes, ctimes = (marks[at::COLUMNS] for at in range(COLUMNS))
    times = [array("q", part) for column in (mtimes, ctimes) for part in _split(column)]
    return [array("I", modes), inodes, sizes, *times]


def of_columns(columns: list[array[int]]) -> array[int]:
    """The marks that such columns are."""
    modes, inodes, sizes, *times = columns
    marks = array("q", bytes(8 * COLUMNS * len(modes)))
    marks[0::COLUMNS] = array("q", modes)
    marks[1::COLUMNS] = array("q", [inode & INODE for inode in inodes])
    marks[2::COLUMNS] = sizes
    for at, (seconds, parts) in enumerate((times[:2], times[2:]), start=3):
        whole = (second * _SECOND + part for second, part in zip(seconds, parts, strict=True))
        marks[at::COLUMNS] = array("q", whole)
    return marks


def _split(column: array[int]) -> tuple[list[int], list[int]]:
    return [time // _SECOND for time in column], [time % _SECOND for time in column]


def _function() -> Callable[..., Any]:
    try:
        # Nobody waits for this process's interpreter, so the call need not let go of it.
        return ctypes.PyDLL(None)["lstat"]
    except AttributeError:
        raise UnknownLayoutError from None
