"""Large blobs: a file of its own each, named by its digest, in any size and constant memory."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import threading
from collections.abc import Callable, Container, Iterator
from pathlib import Path

from takeback import faults
from takeback.durable import sync, sync_folder
from takeback.errors import NotFoundError
from takeback_acts.files import failures
from takeback_acts.files.reading import CHUNK, digest, stream, write_all

_FICLONE = 0x40049409
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_TEMP = "incoming-"


class LargeBlobs:
    """The files `aa/<hex>` in one folder, each durable before its digest is answered. Calls block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Between finding that a blob is there and touching it, a sweep must not remove it.
        self._touching = threading.Lock()

    def prepare(self) -> None:
        """Makes the folder and clears what a crash left half written."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in self._folder.glob(_TEMP + "*"):
            left.unlink()

    def add(self, handle: int) -> tuple[str, int]:
        """Keeps an open file's bytes, by a clone where the file system can; answers digest and size."""
        return self._added(lambda target: _copy(handle, target))

    def add_data(self, data: bytes) -> str:
        """Keeps bytes; answers their digest."""
        sha256 = digest(data)
        if not self._is_kept(sha256):
            self._added(lambda target: _filled(target, data, sha256))
        return sha256

    def open(self, sha256: str) -> int:
        """A descriptor for reading; raises NotFoundError `files.blob_missing`."""
        try:
            return os.open(self._path(sha256), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise failures.blob_missing(sha256) from None

    def copy_to(self, sha256: str, target: int) -> None:
        """Writes a blob into an open file and verifies it on the way.

        Raises NotFoundError `files.blob_missing`, TakebackError `files.blob_corrupt`.
        """
        source = self.open(sha256)
        try:
            found, _ = _copy(source, target)
        finally:
            os.close(source)
        if found != sha256:
            raise failures.blob_corrupt(sha256)

    def read(self, sha256: str) -> bytes:
        """A blob's bytes, verified; raises what `copy_to` raises."""
        source = self.open(sha256)
        with os.fdopen(source, "rb") as file:
            data = file.read()
        if digest(data) != sha256:
            raise failures.blob_corrupt(sha256)
        return data

    def has(self, sha256: str) -> bool:
        """Whether there is a file of this name; its bytes are not looked at."""
        return self._path(sha256).exists()

    def sweep(self, live: Container[str], before: float, *, dry_run: bool) -> tuple[int, int]:
        """Removes blobs that are not live and were kept last before that time; answers number and bytes."""
        count = freed = 0
        for path in self._files():
            if path.name in live:
                continue
            with self._touching:
                found = path.stat()
                if found.st_mtime >= before:
                    continue
                if not dry_run:
                    path.unlink()
            count, freed = count + 1, freed + found.st_size
        return count, freed

    def total(self) -> tuple[int, int]:
        """How many blobs there are, and their bytes."""
        sizes = [path.stat().st_size for path in self._files()]
        return len(sizes), sum(sizes)

    def _added(self, fill: Callable[[int], tuple[str, int]]) -> tuple[str, int]:
        temp = self._folder / (_TEMP + secrets.token_hex(8))
        try:
            with failures.reported(os.fsencode(self._folder)):
                handle = os.open(temp, _CREATE, 0o600)
                try:
                    sha256, size = fill(handle)
                    if not self._is_kept(sha256):
                        sync(handle)
                        self._settle(temp, sha256)
                finally:
                    os.close(handle)
        finally:
            temp.unlink(missing_ok=True)
        return sha256, size

    def _settle(self, temp: Path, sha256: str) -> None:
        path = self._path(sha256)
        faults.point("files.blob.written")
        if not path.parent.exists():
            path.parent.mkdir(mode=0o700, exist_ok=True)
            sync_folder(self._folder)
        os.replace(temp, path)
        sync_folder(path.parent)

    def _is_kept(self, sha256: str) -> bool:
        """Whether a whole copy is there, which counts as new from now on; a damaged one must give way."""
        return self._touch(sha256) and self.is_sound(sha256)

    def is_sound(self, sha256: str) -> bool:
        """Whether the file of this name has the bytes that it is named by."""
        with contextlib.suppress(OSError, NotFoundError):
            handle = self.open(sha256)
            try:
                return stream(handle, None)[0] == sha256
            finally:
                os.close(handle)
        return False

    def _touch(self, sha256: str) -> bool:
        with self._touching, contextlib.suppress(FileNotFoundError):
            os.utime(self._path(sha256))
            return True
        return False

    def _path(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256

    def _files(self) -> Iterator[Path]:
        return self._folder.glob("[0-9a-f][0-9a-f]/*")


def _filled(target: int, data: bytes, sha256: str) -> tuple[str, int]:
    write_all(target, data)
    return sha256, len(data)


def _copy(source: int, target: int) -> tuple[str, int]:
    """Copies and hashes. A clone is hashed itself, so that nobody can write between copy and hash."""
    if _clone(source, target):
        os.lseek(target, 0, os.SEEK_SET)
        return stream(target, None)
    os.lseek(source, 0, os.SEEK_SET)
    return stream(source, target)


def _clone(source: int, target: int) -> bool:
    if sys.platform != "linux" or os.fstat(source).st_size < CHUNK:
        return False
    import fcntl

    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True
