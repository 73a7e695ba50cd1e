"""Reading: a file's bytes taken at one moment, hashed, and kept where they are wanted later."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from typing import Protocol

from takeback.errors import ConflictError
from takeback_acts.files.paths import shown

CHUNK = 1 << 20
_TRIES = 5
_ZEROS = bytes(CHUNK)

# A large file that somebody writes to is not read again and again.
_MOST_AGAIN = 1 << 30

Take = Callable[[int, int], tuple[str, int]]


class GrewError(Exception):
    """A file has grown while it was read."""


class Reader(Protocol):
    """What becomes of bytes that are read: `file` and `data` answer the digest, `file` the size as well."""

    def file(self, handle: int, size: int) -> tuple[str, int]: ...

    def data(self, data: bytes) -> str: ...


class Digester:
    """A reader that keeps nothing: for versions."""

    def file(self, handle: int, size: int) -> tuple[str, int]:
        """Digest and size of an open file's bytes from where it stands."""
        if size < CHUNK:
            data = read_all(handle, size)
            return digest(data), len(data)
        return stream(handle, None, most=size)

    def data(self, data: bytes) -> str:
        """Digest of bytes."""
        return digest(data)


def steady(handle: int, path: bytes, take: Take) -> tuple[os.stat_result, str, int]:
    """What `take` makes of an open file's bytes, taken while nobody wrote; with the file's stat.

    Raises ConflictError `files.unstable` when somebody writes at every try.
    """
    read = 0
    for _ in range(_TRIES):
        before = os.fstat(handle)
        if read and read + before.st_size > _MOST_AGAIN:
            break
        read += before.st_size
        os.lseek(handle, 0, os.SEEK_SET)
        try:
            sha256, size = take(handle, before.st_size)
        except GrewError:
            continue
        after = os.fstat(handle)
        if _mark(before) == _mark(after) and size == after.st_size:
            return after, sha256, size
    raise ConflictError(
        "files.unstable",
        f"{shown(path)} is being written to and could not be read at one moment",
        "Wait until whatever writes it is done.",
        retryable=True,
    )


def digest(data: bytes) -> str:
    """SHA-256 of plain bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def read_all(handle: int, size: int) -> bytes:
    """The bytes of an open file of this size, from where it stands; more than `size` when it has grown."""
    parts, read = [], 0
    # Not to the end: whoever writes may be faster.
    while read <= size and (part := os.read(handle, size + 1)):
        parts.append(part)
        read += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def stream(
    source: int,
    target: int | None,
    cover: Callable[[int], None] | None = None,
    most: int = sys.maxsize,
) -> tuple[str, int]:
    """Digest and size of an open file's bytes, copied on the way into `target`, in constant memory.

    It ends with the portion that goes beyond `most` bytes. Where a file has holes, so has its copy, in an
    empty target. `cover` is told the size with each portion before that is written.
    """
    hashed, size, hole = hashlib.sha256(), 0, False
    holey = target is not None and has_holes(source)
    while size <= most and (part := os.read(source, CHUNK)):
        hashed.update(part)
        size += len(part)
        if cover is not None:
            cover(size)
        if target is not None:
            hole = holey and part == _ZEROS
            if hole:
                os.lseek(target, len(part), os.SEEK_CUR)
            else:
                write_all(target, part)
    if hole and target is not None:
        os.ftruncate(target, size)
    return hashed.hexdigest(), size


def write_all(target: int, data: bytes) -> None:
    """Writes every byte, also where the system takes them in portions."""
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]


def has_holes(handle: int) -> bool:
    """Whether an open file takes less room than it is long."""
    found = os.fstat(handle)
    return found.st_blocks * 512 < found.st_size


def _mark(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns
