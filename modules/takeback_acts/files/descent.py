"""Descent: all that an open folder holds, one after the other, at any depth.

The depth costs neither recursion nor open folders.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from takeback_acts.files import failures
from takeback_acts.files.beneath import Home, Spot
from takeback_acts.files.capture.way import MovedError, Way
from takeback_acts.files.paths import join


@dataclass(slots=True)
class Met:
    """Something that is met: its place, its path from the top, and its stat.

    A folder is met before what it holds and once more when it is left. Set `enter` to False and it is passed
    by: then it is not left either.
    """

    spot: Spot
    place: bytes
    found: os.stat_result
    leaving: bool = False
    enter: bool = True

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return stat.S_ISDIR(self.found.st_mode)


def _nothing(folder: int) -> None:
    """Folders are entered as they are."""


def descend(handle: int, path: bytes, home: Home, prepare: Callable[[int], None] = _nothing) -> Iterator[Met]:
    """All that lies in an open folder, by name; `prepare` is called with each folder before it is listed.

    Raises RefusedError `files.home`, ConflictError `files.changed`, and what the system says. Blocks.
    """
    way = Way(handle)
    levels = [(b"", iter(_names(handle)))]
    try:
        while levels:
            inner, names = levels[-1]
            name = next(names, None)
            if name is not None:
                met = _look(way.fd, inner + name, path)
                if met is None:
                    continue
                yield met
                if met.is_folder and met.enter:
                    _down(way, met, home)
                    prepare(way.fd)
                    levels.append((met.place + b"/", iter(_names(way.fd))))
                continue
            levels.pop()
            if levels:
                _up(way, len(levels) - 1, join(path, inner[:-1]))
                met = _look(way.fd, inner[:-1], path)
                if met is not None:
                    met.leaving = True
                    yield met
    finally:
        way.close()


def _look(folder: int, place: bytes, path: bytes) -> Met | None:
    spot = Spot(folder, place.rpartition(b"/")[2], join(path, place))
    found = spot.look()
    return None if found is None else Met(spot, place, found)


def _names(folder: int) -> list[bytes]:
    return sorted(map(os.fsencode, os.listdir(folder)))


def _down(way: Way, met: Met, home: Home) -> None:
    with failures.reported(met.spot.path):
        found = way.down(met.spot.name)
    home.check(found, met.spot.path)
    if (found.st_dev, found.st_ino) != (met.found.st_dev, met.found.st_ino):
        raise failures.changed(met.spot.path)


def _up(way: Way, depth: int, path: bytes) -> None:
    try:
        way.up(depth)
    except MovedError as error:
        raise failures.changed(path) from error
