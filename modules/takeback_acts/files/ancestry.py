"""Ancestry: the folders that lead to a place, so that a disk that is away isn't taken for a deletion.

A folder is known by its device and inode, `2049:131`. Devices may be numbered anew at each start.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping

from takeback_acts.files import beneath, failures
from takeback_acts.files.paths import resource, split


def identities(leading: Mapping[bytes, os.stat_result]) -> dict[str, str]:
    """What is known of folders, by their resources."""
    return {resource(path): _identity(about) for path, about in leading.items()}


def above(targets: Iterable[bytes]) -> dict[str, str]:
    """What leads to these paths now: each folder above them, but in shut ones, by its resource. Blocks."""
    folders = {split(path)[0] for path in targets}
    return identities(
        {path: about for folder in folders for path, about in beneath.leading(folder, (errno.EACCES,))}
    )


def require_there(path: bytes, known: Mapping[str, str]) -> None:
    """Raises TakebackError `files.unreachable` when the disk that a path lay on is not there. Blocks.

    `known` is what led there once. Where the path's folder is gone, what is left above it must be what it
    was, and no empty folder that a disk was mounted on.
    """
    folders = lineage(split(path)[0])
    with failures.reported(path):
        existing = beneath.leading(folders[-1])
        if existing and _is_away(folders, existing, known):
            raise failures.unreachable(path)


def lineage(folder: bytes) -> list[bytes]:
    """A folder with the ones above it, from the root down."""
    parts = [part for part in folder.split(b"/") if part]
    return [b"/" + b"/".join(parts[:depth]) for depth in range(len(parts) + 1)]


def _is_away(
    folders: list[bytes], existing: list[tuple[bytes, os.stat_result]], known: Mapping[str, str]
) -> bool:
    lowest, about = existing[-1]
    was = known.get(resource(lowest))
    if was is None:
        return False
    here, there = _identity(about).split(":"), was.split(":")
    same_device, same_inode = (one == other for one, other in zip(here, there, strict=True))
    if len(existing) == len(folders):
        return not same_device and not same_inode
    if not same_device:
        return True
    if same_inode:
        below = known.get(resource(folders[len(existing)]), was)
        return below.split(":")[0] != there[0]
    return not os.listdir(lowest)


def _identity(found: os.stat_result) -> str:
    return f"{found.st_dev}:{found.st_ino}"
