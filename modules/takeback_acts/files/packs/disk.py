"""Disk: what has to be done to a file or a folder for it to be there after a power cut."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from takeback import faults
from takeback_acts.files.reading import write_all

TEMP = ".tmp"


def sync(handle: int) -> None:
    """Makes an open file's bytes durable."""
    if sys.platform == "darwin":
        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)  # fsync there leaves bytes in the drive's cache
    else:
        os.fdatasync(handle)


def sync_folder(folder: Path) -> None:
    """Makes a folder's names durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def create(path: Path) -> int:
    """A descriptor of a new file, to read and write; nobody else may read it."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def put(path: Path, parts: Iterable[bytes]) -> None:
    """Writes a whole file durably under its name; after a crash it is the old one or the new one."""
    temp = path.with_name(path.name + TEMP)
    temp.unlink(missing_ok=True)
    handle = create(temp)
    try:
        for part in parts:
            write_all(handle, part)
        sync(handle)
        faults.point("packs.file.written")
        os.rename(temp, path)
    except BaseException:
        temp.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)
    sync_folder(path.parent)
    faults.point("packs.file.named")


class Handle:
    """A descriptor that is closed when nobody holds this object any more, so no reader loses it midway."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)
