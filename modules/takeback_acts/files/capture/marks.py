"""Marks: the numbers by which an entry is known to be as it was. Stands alone, on the stdlib."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator

COLUMNS = 5
# Overlay file systems use the highest bit of an inode's number, which no column has.
INODE = (1 << 63) - 1
_ENCODING = sys.getfilesystemencoding()

Own = tuple[int, int, int, int, int]
Mark = tuple[int, int, int, int, int]


def own_mark(found: os.stat_result) -> Own:
    """What tells that a folder's entry and names are as they were."""
    return found.st_mode, found.st_ino & INODE, found.st_dev & INODE, found.st_mtime_ns, found.st_ctime_ns


def mark(found: os.stat_result) -> Mark:
    """What tells that something other than a folder is as it was."""
    return found.st_mode, found.st_ino & INODE, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def entries(folder: int, *, files: bool = True) -> Iterator[tuple[bytes, os.stat_result | None, bool]]:
    """What lies in an open folder, one by one: a name, its stat, and whether it is a folder.

    Folders come without a stat, and without `files` also what is listed as a file.
    """
    with os.scandir(folder) as listed:
        for entry in listed:
            name = entry.name.encode(_ENCODING, "surrogateescape")
            if entry.is_dir(follow_symlinks=False):
                yield name, None, True
                continue
            if not files and entry.is_file(follow_symlinks=False):
                yield name, None, False
                continue
            try:
                found = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISDIR(found.st_mode):
                yield name, None, True
            else:
                yield name, found, False
