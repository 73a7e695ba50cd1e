"""Clearing: removing what was captured, and nothing that anybody has put or saved there since."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import sys
from collections.abc import Callable, Mapping

from takeback_acts.files import beneath, failures, trees
from takeback_acts.files.beneath import Home, Spot
from takeback_acts.files.descent import descend
from takeback_acts.files.reading import Digester
from takeback_acts.files.trees import Entry, Seen

# Linux: FS_IOC_GETFLAGS with FS_IMMUTABLE_FL and FS_APPEND_FL.
_GET_FLAGS, _IMMUTABLE, _APPEND = 0x80086601, 0x10, 0x20
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
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
    return _clear_folder(spot, known, home)


def require_clearable(spot: Spot, home: Home) -> None:
    """Raises RefusedError `files.denied` for a folder that holds what the system would not let go.

    So that it stays whole rather than half: a name in somebody else's folder, or a file made immutable.
    """
    handle = beneath.open_within(spot.folder, spot.name, spot.path, home)
    try:
        for met in descend(handle, spot.path, home):
            another_s = _is_another_s(met.spot.folder, met.found)
            if not met.leaving and (another_s or _is_fixed(met.spot, met.found)):
                raise failures.denied(met.spot.path)
    finally:
        os.close(handle)


def _is_another_s(folder: int, found: os.stat_result) -> bool:
    """Whether only somebody else may remove an entry of a folder: a folder of our own we make writable."""
    about, user = os.fstat(folder), os.geteuid()
    if user in (0, about.st_uid):
        return False
    if about.st_mode & stat.S_ISVTX and found.st_uid != user:
        return True
    return not os.access(b".", os.W_OK | os.X_OK, dir_fd=folder)


def _is_fixed(spot: Spot, found: os.stat_result) -> bool:
    """Whether a file or folder was made immutable, or one that can only be appended to."""
    flags = getattr(found, "st_flags", 0)
    if sys.platform != "linux" or not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        return bool(flags & (stat.UF_IMMUTABLE | stat.SF_IMMUTABLE | stat.UF_APPEND | stat.SF_APPEND))
    with contextlib.suppress(OSError):
        handle = os.open(spot.name, _LOOK, dir_fd=spot.folder)
        try:
            got = fcntl.ioctl(handle, _GET_FLAGS, bytes(8))
        finally:
            os.close(handle)
        return bool(int.from_bytes(got[:4], sys.byteorder) & (_IMMUTABLE | _APPEND))
    return False


def _clear_folder(spot: Spot, known: Mapping[bytes, Entry], home: Home) -> bool:
    handle = beneath.open_within(spot.folder, spot.name, spot.path, home)
    try:
        if os.fstat(handle).st_dev != os.fstat(spot.folder).st_dev:
            return False
        _make_writable(handle)
        empty = _clear_inside(handle, spot.path, known, home)
    finally:
        os.close(handle)
    return empty and _gone(os.rmdir, spot)


def _clear_inside(folder: int, path: bytes, known: Mapping[bytes, Entry], home: Home) -> bool:
    """Removes what is known in an open folder; answers whether nothing is left in it."""
    device, empty = os.fstat(folder).st_dev, [True]
    for met in descend(folder, path, home, _make_writable):
        entry = known.get(met.place)
        if met.leaving:
            gone = empty.pop() and _gone(os.rmdir, met.spot)
        elif entry is None:
            met.enter = gone = False
        elif met.is_folder:
            met.enter = entry.state.kind == "dir" and met.found.st_dev == device
            if met.enter:
                empty.append(True)
                continue
            gone = False
        else:
            gone = _is_still(met.spot, met.found, entry) and _gone(os.unlink, met.spot)
        empty[-1] = empty[-1] and gone
    return empty[0]


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
