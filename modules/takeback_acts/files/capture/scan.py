"""The scan: which entries of known folders differ from how they were known. Stands alone, on the stdlib.

Links are never followed and mount points never crossed.
"""

from __future__ import annotations

import errno
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from takeback_acts.files.capture.marks import COLUMNS, INODE, Known, Own, entries, mark, own_mark
from takeback_acts.files.capture.way import MovedError, Way

_SLICE = 8192

Look = Callable[[bytes], os.stat_result]


class Difference(NamedTuple):
    """How a folder differs: changed and new names, names gone, and its folders where it was listed.

    `error` is the number of what the system said when the folder could not be opened or listed.
    """

    number: int
    own: Own | None
    altered: list[bytes]
    gone: list[bytes]
    folders: list[bytes] | None
    error: int = 0


class Step(NamedTuple):
    """A folder on a scan's way, parents first; one that is not to be looked at is only passed through."""

    number: int
    depth: int
    name: bytes
    look: bool


def scan(
    root: int, steps: Sequence[Step], known: Callable[[int], Known], *, alone: bool = False
) -> Iterator[Difference]:
    """How folders differ from what is known of them; those that do not are passed over in silence.

    A process that does nothing else is `alone`: its working folder may move along, which is faster.
    """
    way = Way(root)
    lost = 0
    device = os.fstat(root).st_dev
    try:
        for number, depth, name, look in steps:
            if lost and depth > lost:
                continue
            lost = 0
            try:
                found = _enter(way, depth, name)
                # Something was mounted over a folder: what it hides can't be looked at.
                if found.st_dev != device:
                    raise MovedError(errno.EXDEV, "mounted over")
                difference = compare(way.fd, number, known(number), alone=alone) if look else None
            except OSError as error:
                lost = max(depth, 1)
                difference = Difference(number, None, [], [], None, error.errno or errno.EIO)
            if difference is not None:
                yield difference
    finally:
        way.close()


def compare(folder: int, number: int, known: Known, *, alone: bool = False) -> Difference | None:
    """How an open folder differs from what is known of it; None when it does not."""
    own = own_mark(os.fstat(folder))
    if own != known.own or not known.settled:
        return _listed(folder, number, known, own)
    altered: list[bytes] = []
    gone: list[bytes] = []
    names = known.names.split(b"/")
    names.pop()
    look: Look = os.lstat if alone else partial(os.stat, dir_fd=folder, follow_symlinks=False)
    if alone:
        os.fchdir(folder)
    for start in range(0, len(names), _SLICE):
        part = names[start : start + _SLICE]
        _compare_part(look, part, known.marks[start * COLUMNS : (start + _SLICE) * COLUMNS], altered, gone)
    return Difference(number, own, altered, gone, None) if altered or gone else None


def _compare_part(
    look: Look, names: list[bytes], marks: array[int], altered: list[bytes], gone: list[bytes]
) -> None:
    flat: list[int] = []
    missing: set[int] = set()
    for name in names:
        try:
            s = look(name)
            flat += (s.st_mode, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
        except OSError:
            missing.add(len(flat) // COLUMNS)
            flat += (0, 0, 0, 0, 0)
    found = _packed(flat)
    if found == marks:
        return
    for index, name in enumerate(names):
        if index in missing:
            gone.append(name)
        elif found[index * COLUMNS : (index + 1) * COLUMNS] != marks[index * COLUMNS : (index + 1) * COLUMNS]:
            altered.append(name)


def _packed(flat: list[int]) -> array[int]:
    try:
        return array("q", flat)
    except OverflowError:
        return array("q", [number & INODE if number > INODE else number for number in flat])


def _listed(folder: int, number: int, known: Known, own: Own) -> Difference:
    names = known.names.split(b"/")
    names.pop()
    before = {name: index for index, name in enumerate(names)}
    altered, folders, marks = [], [], known.marks
    for name, found in entries(folder):
        if found is None:
            folders.append(name)
            continue
        at = before.pop(name, -1)
        if at < 0 or tuple(marks[at * COLUMNS : (at + 1) * COLUMNS]) != mark(found):
            altered.append(name)
    return Difference(number, own, altered, list(before), folders)


def _enter(way: Way, depth: int, name: bytes) -> os.stat_result:
    if depth == 0:
        way.up(0)
        return os.fstat(way.fd)
    way.up(depth - 1)
    if way.depth < depth - 1:
        raise MovedError(errno.ENOENT, "a folder above is not where it was")
    return way.down(name)
