"""Durable: what has to be done to bytes and names for them to be there after a power cut."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from pathlib import Path


def sync(handle: int) -> None:
    """Makes an open file durable, bytes, mode and times; raises OSError."""
    if sys.platform == "darwin":
        # fsync there leaves the bytes in the drive's cache. Not every file system has the stronger call.
        with contextlib.suppress(OSError):
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
            return
    os.fsync(handle)


def sync_folder(folder: Path) -> None:
    """Makes a folder's names durable; raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
