"""Folders: what making and removing them needs to know first."""

from __future__ import annotations

import os
import stat

from takeback.errors import ConflictError, TakebackError
from takeback_acts.files import beneath, failures, paths, trees
from takeback_acts.files.beneath import Home, Spot
from takeback_acts.files.reading import Reader
from takeback_acts.files.states import State
from takeback_acts.files.trees import Entry, Seen


def require_removable(spot: Spot, home: Home, *, recursive: bool) -> None:
    """Raises NotFoundError `files.absent`, ConflictError `files.not_empty` unless nothing is in it."""
    found = spot.look()
    if found is None:
        raise failures.absent(spot.path)
    if not stat.S_ISDIR(found.st_mode) or recursive:
        return
    handle = beneath.open_within(spot.folder, spot.name, spot.path, home)
    try:
        with os.scandir(handle) as entries:
            filled = next(entries, None) is not None
    finally:
        os.close(handle)
    if filled:
        raise ConflictError(
            "files.not_empty",
            f"{paths.shown(spot.path)} is not empty",
            "Set recursive to delete what it holds.",
        )


def topmost_missing(path: bytes, home: Home, *, parents: bool) -> bytes:
    """The first folder on a path that isn't there; without `parents` the last one. Blocks."""
    top = path
    while parents:
        parent = paths.split(top)[0]
        try:
            os.close(beneath.open_folder(parent, home))
        except TakebackError as error:
            if error.code != "files.absent":
                raise
            top = parent
        else:
            break
    return top


def nested(inner: bytes, mode: int, reader: Reader) -> Seen:
    """A new folder, with the folders in it down to `inner`."""
    state = State(kind="dir", mode=mode)
    parts = [part for part in inner.split(b"/") if part]
    entries = tuple(Entry(b"/".join(parts[: depth + 1]), state) for depth in range(len(parts)))
    manifest = reader.data(trees.dump(entries))
    return Seen(state.model_copy(update={"manifest": manifest, "content": trees.version(entries)}), entries)
