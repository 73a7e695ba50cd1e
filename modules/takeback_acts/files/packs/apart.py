"""Blobs apart: a file of its own each, named by its digest, in any size and constant memory."""

from __future__ import annotations

import errno
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from takeback import faults
from takeback_acts.files.packs import disk
from takeback_acts.files.reading import CHUNK, GrewError, has_holes, stream

Cover = Callable[[int], None]

_FICLONE = 0x40049409
_PORTION = 32 << 20
_CANNOT = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTTY, errno.EPERM, errno.EBADF}


class Incoming(NamedTuple):
    """A whole copy that has no name yet."""

    path: Path
    sha256: str
    size: int


class Apart:
    """The files `large/aa/<hex>` of a store, and those that are being copied in. Calls block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "large"
        self._incoming = folder / "incoming"

    def prepare(self) -> None:
        """Makes the folders and clears what a crash left half copied."""
        for folder in (self._folder, self._incoming):
            folder.mkdir(mode=0o700, exist_ok=True)
        for left in self._incoming.iterdir():
            left.unlink()

    def receive(self, fill: Callable[[int], tuple[str, int]]) -> Incoming:
        """What `fill(target)` writes, durably; it answers digest and size. If it raises, nothing is left."""
        path = self._incoming / secrets.token_hex(8)
        handle = disk.create(path)
        try:
            sha256, size = fill(handle)
            disk.sync(handle)
        except BaseException:
            path.unlink()
            raise
        finally:
            os.close(handle)
        faults.point("packs.apart.copied")
        return Incoming(path, sha256, size)

    def name(self, incoming: Incoming) -> None:
        """Gives a copy its name, durably."""
        path = self.path(incoming.sha256)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        os.rename(incoming.path, path)
        faults.point("packs.apart.named")
        disk.sync_folder(path.parent)
        disk.sync_folder(self._folder)
        faults.point("packs.apart.durable")

    def link(self, paths: Sequence[Path]) -> None:
        """Gives files of other folders a second name here, durably; copies where that can't be."""
        for path in paths:
            there = self.path(path.name)
            there.parent.mkdir(mode=0o700, exist_ok=True)
            try:
                os.link(path, there)
            except FileExistsError:
                continue
            except OSError:  # another disk
                with path.open("rb") as file:
                    incoming = self.receive(lambda target, file=file: copy(file.fileno(), target, _any))  # type: ignore[misc]
                os.rename(incoming.path, there)
        for parent in {self.path(path.name).parent for path in paths}:
            disk.sync_folder(parent)
        disk.sync_folder(self._folder)

    def path(self, sha256: str) -> Path:
        """Where a blob's file is."""
        return self._folder / sha256[:2] / sha256

    def size(self, sha256: str) -> int | None:
        """The size of a blob's file, None where there is none; its bytes are not looked at."""
        try:
            return self.path(sha256).lstat().st_size
        except FileNotFoundError:
            return None

    def put_away(self, sha256: str) -> Path:
        """Takes a blob's name from its file, which is fast, unlike the unlink that is left to the caller."""
        away = self._incoming / secrets.token_hex(8)
        with suppress(FileNotFoundError):
            os.rename(self.path(sha256), away)
        faults.point("packs.apart.removed")
        return away

    def names(self) -> Iterator[tuple[str, float]]:
        """Every file's name and when it was made."""
        for folder in self._folder.iterdir():
            for path in folder.iterdir():
                yield path.name, path.stat().st_mtime


def copy(source: int, target: int, cover: Cover) -> tuple[str, int]:
    """Copies an open file into an empty one as cheaply as the file system can; answers digest and size.

    `cover(size)` is asked before each portion is written. Raises OSError, what `cover` raises, and GrewError
    rather than follow a file that somebody writes to.
    """
    # Files of the kernel's own have content though they have no size.
    size = os.fstat(source).st_size or CHUNK
    cloned = _clone(source, target)
    if cloned or _in_kernel(source, target, cover, size):
        if not cloned:
            _require_not_grown(source, size)
        # The copy itself is hashed: nobody can write between copy and hash.
        cover(os.fstat(target).st_size)
        os.lseek(target, 0, os.SEEK_SET)
        return stream(target, None)
    os.ftruncate(target, 0)
    os.lseek(target, 0, os.SEEK_SET)
    os.lseek(source, 0, os.SEEK_SET)
    found = stream(source, target, cover, size)
    _require_not_grown(source, size)
    return found


def _require_not_grown(source: int, size: int) -> None:
    if os.fstat(source).st_size > size:
        raise GrewError


def _any(size: int) -> None:
    """What is there already needs no more room."""


def _clone(source: int, target: int) -> bool:
    if sys.platform != "linux" or os.fstat(source).st_size < CHUNK:
        return False
    import fcntl

    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def _in_kernel(source: int, target: int, cover: Cover, size: int) -> bool:
    if sys.platform != "linux" or has_holes(source):  # which a copy by the kernel may fill
        return False
    done = 0
    try:
        while True:
            left = size - done
            if left <= 0:
                return True
            cover(done + min(left, _PORTION))
            portion = os.copy_file_range(source, target, min(left, _PORTION), done, done)
            done += portion
            if portion == 0:
                # Files of the kernel's own answer nothing here and have content all the same.
                return done > 0
    except OSError as error:
        if error.errno in _CANNOT:
            return False
        raise
