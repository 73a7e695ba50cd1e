"""Looking: what lies in a folder, and which folders there are to listen to. All of it may block."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from typing import NamedTuple

from takeback_acts.watchers.arrivals import Mark


class Ground(NamedTuple):
    """A folder that is there, by what tells it from another one put in its place."""

    path: str
    device: int
    inode: int


def files(root: str, concerns: Callable[[str], bool]) -> dict[str, Mark] | str:
    """The regular files in a folder whose names concern a rule; or what the system said instead."""
    found: dict[str, Mark] = {}
    try:
        with os.scandir(root) as entries:
            for entry in entries:
                if concerns(entry.name) and (mark := file_mark(entry.path)) is not None:
                    found[entry.name] = mark
    except OSError as error:
        return error.strerror or "it can't be read"
    return found


def file_mark(path: str) -> Mark | None:
    """The mark of a regular file; None where there is none."""
    try:
        about = os.lstat(path)
    except OSError:
        return None
    return Mark(about.st_ino, about.st_size, about.st_mtime_ns) if stat.S_ISREG(about.st_mode) else None


def ground(roots: Iterable[str]) -> tuple[Ground, ...]:
    """The folders to listen to: each root, or what there is on the way to one that is not there."""
    return tuple(sorted({found for root in roots if (found := _nearest(root)) is not None}))


def _nearest(path: str) -> Ground | None:
    while True:
        try:
            about = os.stat(path)
            # What may not be read can't be listened to; that it has become readable, its own folder tells.
            if stat.S_ISDIR(about.st_mode) and _readable(path):
                return Ground(path, about.st_dev, about.st_ino)
        except OSError:
            pass
        above = os.path.dirname(path)
        if above == path:
            return None
        path = above


def _readable(path: str) -> bool:
    return os.access(path, os.R_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)
