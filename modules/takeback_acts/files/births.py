"""Births: since when there has been a file of this inode, where the system tells."""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

from takeback.errors import TakebackError
from takeback_acts.files import beneath
from takeback_acts.files.beneath import Home, Spot

_AT_SYMLINK_NOFOLLOW = 0x100
_STATX_BTIME = 0x800
_SIZE = 256
# Linux: CLOCK_REALTIME_COARSE, by which file systems tell the time.
_COARSE = 5
# struct statx: stx_mask at 0; stx_btime is seconds and nanoseconds at 80.
_MASK = struct.Struct("=I")
_BTIME = struct.Struct("=qI")
_BTIME_AT = 80
# Only a time is looked at, so that it may be anybody's.
_NOBODYS = Home(())


def now() -> int:
    """A moment by the clock of births: what comes into being after this call is not older."""
    return time.clock_gettime_ns(_COARSE) if sys.platform == "linux" else time.time_ns()


def surely_later(path: bytes, moment_ns: int) -> bool:
    """Whether what lies at a path came into being after a moment, in nanoseconds since 1970. Blocks.

    Where nobody can tell it did not. What was renamed to there is as old as it was before.
    """
    found = born(path)
    return found is not None and found > moment_ns


def born(path: bytes) -> int | None:
    """When what lies at a path came into being, in nanoseconds since 1970; None if untold. Blocks."""
    try:
        with beneath.spot(path, _NOBODYS) as spot:
            return _by_statx(spot) if sys.platform != "darwin" else _by_stat(spot)
    except (OSError, AttributeError, TakebackError):
        return None


def _by_stat(spot: Spot) -> int | None:
    found: Any = spot.look()
    return None if found is None else int(found.st_birthtime * 1e9)


def _by_statx(spot: Spot) -> int | None:
    found = ctypes.create_string_buffer(_SIZE)
    if _statx()(spot.folder, spot.name, _AT_SYMLINK_NOFOLLOW, _STATX_BTIME, found) != 0:
        return None
    if not _MASK.unpack_from(found)[0] & _STATX_BTIME:
        return None
    seconds, nanoseconds = _BTIME.unpack_from(found, _BTIME_AT)
    return int(seconds) * 10**9 + int(nanoseconds)


@functools.cache
def _statx() -> Callable[..., int]:
    """The C library's own; raises AttributeError where it has none."""
    return ctypes.CDLL(None).statx
