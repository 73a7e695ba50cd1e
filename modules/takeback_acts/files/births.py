"""Births: since when there has been a file of this inode, where the system tells."""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys
import time
from collections.abc import Callable

_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW = 0x100
_STATX_BTIME = 0x800
_SIZE = 256
# Linux: CLOCK_REALTIME_COARSE, by which file systems tell the time.
_COARSE = 5
# struct statx: stx_mask at 0; stx_btime is seconds and nanoseconds at 80.
_MASK = struct.Struct("=I")
_BTIME = struct.Struct("=qI")
_BTIME_AT = 80


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
        if sys.platform == "darwin":
            return int(os.lstat(path).st_birthtime * 1e9)
        return _by_statx(path)
    except (OSError, AttributeError):
        return None


def _by_statx(path: bytes) -> int | None:
    found = ctypes.create_string_buffer(_SIZE)
    if _statx()(_AT_FDCWD, path, _AT_SYMLINK_NOFOLLOW, _STATX_BTIME, found) != 0:
        return None
    if not _MASK.unpack_from(found)[0] & _STATX_BTIME:
        return None
    seconds, nanoseconds = _BTIME.unpack_from(found, _BTIME_AT)
    return int(seconds) * 10**9 + int(nanoseconds)


@functools.cache
def _statx() -> Callable[..., int]:
    """The C library's own; raises AttributeError where it has none."""
    return ctypes.CDLL(None).statx
