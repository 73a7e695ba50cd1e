"""Clearing: removing what was captured, and nothing that anybody has put or saved there since."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Mapping

from takeback_acts.files import beneath, trees
from takeback_acts.files.beneath import Home, Spot
from takeback_acts.files.paths import join
from takeback_acts.files.reading import Digester
from takeback_acts.files.trees import Entry, Seen

# What stays when the system will not have it removed, or somebody has just put something in.
_STAYS = {errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY, errno.EPERM, errno.EACCES, errno.EROFS}


def clear(spot: Spot, seen: Seen, home: Home) -> bool:
    """Removes what lies at a place as far as it is what was seen there; answers whether nothing is left.

    A program that stands in a folder goes on saving there after the folder has lost its name. So each file
    is looked at again right before it goes: what is new or has changed since stays.
    """
    found = spot.look()
    if found is None:
        return True
    if not stat.S_ISDIR(found.st_mode):
        return _is_still(spot, found, Entry(b"", seen.state, seen.mark)) and _gone(os.unlink, spot)
    if seen.state.kind != "dir":
        return False
    known = {entry.path: entry for entry in seen.entries}
    return _clear_folder(spot, b"", known, home)


def _clear_folder(spot: Spot, inner: bytes, known: Mapping[bytes, Entry], home: Home) -> bool:
    handle = beneath.open_within(spot.folder, spot.name, spot.path, home)
    try:
        _make_writable(handle)
        names = map(os.fsencode, os.listdir(handle))
        left = [name for name in names if not _clear_entry(handle, inner + name, spot.path, known, home)]
    finally:
        os.close(handle)
    return not left and _gone(os.rmdir, spot)


def _clear_entry(folder: int, place: bytes, path: bytes, known: Mapping[bytes, Entry], home: Home) -> bool:
    name = place.rpartition(b"/")[2]
    own = Spot(folder, name, join(path, name))
    entry, found = known.get(place), own.look()
    if found is None:
        return True
    if entry is None:
        return False
    if stat.S_ISDIR(found.st_mode):
        return entry.state.kind == "dir" and _clear_folder(own, place + b"/", known, home)
    return _is_still(own, found, entry) and _gone(os.unlink, own)


def _is_still(spot: Spot, found: os.stat_result, entry: Entry) -> bool:
    """Whether a file or link is the one that was seen; by its bytes, where its mark says nothing."""
    if entry.mark == trees.mark(found):
        return True
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
        return False
    return trees.plain(spot, found, Digester()).state.version == entry.state.version


def _gone(remove: Callable[..., None], spot: Spot) -> bool:
    try:
        remove(spot.name, dir_fd=spot.folder)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno in _STAYS:
            return False
        raise
    return True


def _make_writable(folder: int) -> None:
    mode = stat.S_IMODE(os.fstat(folder).st_mode)
    if mode & 0o700 != 0o700:
        os.fchmod(folder, mode | 0o700)
