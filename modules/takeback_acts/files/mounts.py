"""Mounts: other file systems within a folder, which no act on that folder may carry away or clear."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from takeback.errors import RefusedError
from takeback_acts.files.paths import beneath, shown

# Only Linux has such a list; elsewhere a mount is known by its device alone.
_LIST = "/proc/self/mountinfo"
_ESCAPED = re.compile(rb"\\([0-7]{3})")


def require_none(path: bytes) -> None:
    """Raises RefusedError `files.mount` when something is mounted at a folder or in it. Blocks.

    A folder that is bound to another place has the same device there, so the list must be asked.
    """
    for point, _ in _mounts():
        if beneath(point, path):
            raise mounted(point)


def foreign(path: bytes) -> list[bytes]:
    """The points in a folder at which other file systems than its own are mounted. Blocks."""
    found = list(_mounts())
    around = [(len(point), device) for point, device in found if beneath(path, point)]
    own = max(around)[1] if around else b""
    return [point for point, device in found if point != path and beneath(point, path) and device != own]


def _mounts() -> Iterator[tuple[bytes, bytes]]:
    """Where something is mounted, with its device."""
    try:
        lines = Path(_LIST).read_bytes().splitlines()
    except OSError:
        return
    for line in lines:
        words = line.split(b" ")
        yield _ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), words[4]), words[2]


def mounted(point: bytes) -> RefusedError:
    """Something else is mounted at this path."""
    return RefusedError(
        "files.mount",
        f"{shown(point)} is another file system, mounted there",
        "Unmount it first, or act on what lies beside it.",
    )
