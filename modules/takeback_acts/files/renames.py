"""Renames: swapping two names in one step, or taking a free one, where the system knows how."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable

from takeback_acts.files.beneath import Spot

_Call = Callable[[int, bytes, int, bytes, int], int]
# Linux: RENAME_EXCHANGE, RENAME_NOREPLACE; macOS: RENAME_SWAP, RENAME_EXCL.
_SWAP, _FREE = (2, 1) if sys.platform == "linux" else (2, 4)
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


def exchange(one: Spot, other: Spot) -> bool:
    """Swaps what two names stand for in one step; False where the file system can't. Raises OSError."""
    return _call(one, other, _SWAP)


def take_free(source: Spot, target: Spot) -> None:
    """Renames to a name that must be free; raises FileExistsError when it is not, and other OSErrors."""
    if not _call(source, target, _FREE):
        _take_free_plainly(source, target)


def replace(source: Spot, target: Spot) -> None:
    """Renames over what is there. Raises OSError."""
    os.rename(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder)


def _take_free_plainly(source: Spot, target: Spot) -> None:
    """Without the system's help: a second name fails when taken; a folder can have none, so we look."""
    found = source.look()
    if found is not None and stat.S_ISREG(found.st_mode) and _second_name(source, target):
        os.unlink(source.name, dir_fd=source.folder)
        return
    if target.look() is not None:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    replace(source, target)


def _second_name(source: Spot, target: Spot) -> bool:
    try:
        os.link(
            source.name,
            target.name,
            src_dir_fd=source.folder,
            dst_dir_fd=target.folder,
            follow_symlinks=False,
        )
    except FileExistsError:
        raise
    except OSError:
        return False
    return True


def _call(one: Spot, other: Spot, flag: int) -> bool:
    if _rename is None:
        return False
    if _rename(one.folder, one.name, other.folder, other.name, flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number))


def _find() -> _Call | None:
    library = ctypes.CDLL(None, use_errno=True)
    name = "renameat2" if sys.platform == "linux" else "renameatx_np"
    found = getattr(library, name, None)
    if found is None:
        return None
    found.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    found.restype = ctypes.c_int
    made: _Call = found
    return made


_rename = _find()
