"""The scan: which entries of known folders differ from how they were known. Stands alone, on the stdlib.

Links are never followed and mount points never crossed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from takeback_acts.files.capture.known import Before
from takeback_acts.files.capture.marks import COLUMNS, Own, entries, mark, own_mark
from takeback_acts.files.capture.way import MovedError, Way


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


def scan(root: int, steps: Sequence[Step], known: Callable[[int], Before]) -> Iterator[Difference]:
    """How folders differ from what is known of them; those that do not are passed over in silence."""
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
                difference = compare(way.fd, number, known(number), found) if look else None
            except OSError as error:
                lost = max(depth, 1)
                difference = Difference(number, None, [], [], None, error.errno or errno.EIO)
            if difference is not None:
                yield difference
    finally:
        way.close()


def compare(folder: int, number: int, known: Before, found: os.stat_result) -> Difference | None:
    """How an open folder, with its stat, differs from what is known of it; None when it does not."""
    own = own_mark(found)
    if own != known.own or not known.settled:
        return _listed(folder, number, known, own)
    differing = known.differing(folder)
    return Difference(number, own, *differing, None) if any(differing) else None


def _listed(folder: int, number: int, known: Before, own: Own) -> Difference:
    names = known.names.split(b"/")
    names.pop()
    before = {name: index for index, name in enumerate(names)}
    altered, folders, marks = [], [], known.marks
    for name, found, is_folder in entries(folder):
        if found is None or is_folder:
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
