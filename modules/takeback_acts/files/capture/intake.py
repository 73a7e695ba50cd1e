"""Intake: what lies at a name becomes a row, and its bytes are kept, read once and at one moment."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable
from typing import Protocol

from takeback.errors import ConflictError, TakebackError
from takeback_acts.files.capture.marks import Mark, mark
from takeback_acts.files.capture.row import Row, Source
from takeback_acts.files.reading import CHUNK, Digester, digest, steady

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# What a clock tick of the kernel may hide, and what a file system that counts in two seconds may.
_TICK = 20_000_000
_COARSE = 2_100_000_000
_TRIES = 5
_NO_ROOM = "blobs.no_space"
_DENIED = {errno.EACCES, errno.EPERM}


class Taker(Protocol):
    """What takes bytes."""

    def put_file(self, handle: int, size: int) -> str:
        """Takes an open file's bytes from where it stands; answers their digest in hex."""
        ...

    def put(self, data: bytes) -> str:
        """Takes bytes; answers their digest in hex."""
        ...


class Contents(Taker, Protocol):
    """Where bytes are kept by their SHA-256. Calls come from one thread at a time, and may block."""

    def get(self, sha256: str) -> bytes:
        """Bytes that were made durable before, verified; raises TakebackError."""
        ...

    def sync(self) -> None:
        """Makes durable all that was put before."""
        ...


class Tracked(Protocol):
    """What git has of one folder's files."""

    def expected(self, name: bytes, size: int) -> bytes | None:
        """The kept object of this size that git tracks the file as; the bytes are then compared."""
        ...


class Intake:
    """Takes entries into the store; `unkept` counts those that there was no room for.

    Those are known by their digest all the same, and taken again by every look until there is room. With
    `keeping` off nothing is kept.
    """

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self.keeping = True
        self.unkept = 0
        self._clock: Callable[[], int] = time.time_ns
        self.taken = 0

    def take(
        self, folder: int, name: bytes, found: os.stat_result | None, tracked: Tracked | None = None
    ) -> Row | None:
        """The row of an entry, its content kept; None when it vanished or became a folder.

        `found` is its stat, None for what was listed as a file: then there is none before it is open.
        """
        if found is None or stat.S_ISREG(found.st_mode):
            return self._file(folder, name, found, tracked)
        if stat.S_ISLNK(found.st_mode):
            return _link(folder, name, found)
        return _row(found, mark(found), Source.SPECIAL, racy=False)

    def _file(
        self, folder: int, name: bytes, found: os.stat_result | None, tracked: Tracked | None
    ) -> Row | None:
        at = self._clock()
        try:
            handle = os.open(name, _FILE, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            return self._refused(folder, name, stat.S_IFREG if found is None else found.st_mode, error)
        try:
            return self._read(handle, found or os.fstat(handle), at, name, tracked)
        except ConflictError:
            return _racy(os.fstat(handle), Source.UNSTABLE)
        except OSError:
            return _racy(os.fstat(handle), Source.FAILED)
        finally:
            os.close(handle)

    def _read(
        self, handle: int, found: os.stat_result, at: int, name: bytes, tracked: Tracked | None
    ) -> Row | None:
        if not stat.S_ISREG(found.st_mode):
            return None
        if found.st_size < CHUNK:
            data = os.read(handle, found.st_size + 1)
            after = os.fstat(handle)
            known = mark(after)
            if len(data) == found.st_size and known == mark(found):
                return self._kept(data, after, known, at, name, tracked)
            found = after
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        return self._large(handle, name, tracked)

    def _kept(
        self,
        data: bytes,
        found: os.stat_result,
        known: Mark,
        at: int,
        name: bytes,
        tracked: Tracked | None,
    ) -> Row:
        self.taken += 1
        racy = is_racy(found, at)
        oid = tracked.expected(name, len(data)) if tracked is not None else None
        if oid is not None and git_name(data, len(oid)) == oid:
            return _row(found, known, Source.GIT, oid, racy=racy)
        source, sha256 = self._put_data(data)
        return _row(found, known, source, bytes.fromhex(sha256), racy=racy or source == Source.UNKEPT)

    def _large(self, handle: int, name: bytes, tracked: Tracked | None) -> Row:
        at = self._clock()
        oid = tracked.expected(name, os.fstat(handle).st_size) if tracked is not None else None
        if oid is not None:
            found, named, _ = steady(handle, name, _GitName(len(oid)).take)
            if named == oid.hex():
                self.taken += 1
                return _row(found, mark(found), Source.GIT, oid, racy=is_racy(found, at))
        source, found, sha256 = self._put_file(handle, name)
        self.taken += 1
        racy = source == Source.UNKEPT or is_racy(found, at)
        return _row(found, mark(found), source, bytes.fromhex(sha256), racy=racy)

    def _put_data(self, data: bytes) -> tuple[Source, str]:
        if self.keeping:
            try:
                return Source.BLOB, self._contents.put(data)
            except TakebackError as error:
                _require_no_room(error)
        self.unkept += 1
        return Source.UNKEPT, digest(data)

    def _put_file(self, handle: int, name: bytes) -> tuple[Source, os.stat_result, str]:
        if self.keeping:
            try:
                found, sha256, _ = steady(handle, name, self._put)
                return Source.BLOB, found, sha256
            except TakebackError as error:
                _require_no_room(error)
        self.unkept += 1
        found, sha256, _ = steady(handle, name, Digester().file)
        return Source.UNKEPT, found, sha256

    def _put(self, handle: int, size: int) -> tuple[str, int]:
        # The store reads to the end; that nobody wrote meanwhile is for the times before and after to tell.
        return self._contents.put_file(handle, size), size

    def _refused(self, folder: int, name: bytes, mode: int, error: OSError) -> Row | None:
        try:
            now = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if stat.S_IFMT(now.st_mode) != stat.S_IFMT(mode):
            return None if stat.S_ISDIR(now.st_mode) else self.take(folder, name, now)
        source = Source.DENIED if error.errno in _DENIED else Source.FAILED
        return _row(now, mark(now), source, racy=False)


def is_racy(found: os.stat_result, at: int) -> bool:
    """Whether a write after that moment could have left the times as they are."""
    coarse = found.st_ctime_ns % 1_000_000_000 == 0
    return max(found.st_ctime_ns, found.st_mtime_ns) >= at - (_COARSE if coarse else _TICK)


def same(row: Row, other: Row) -> bool:
    """Whether two rows are of the same content and owner."""
    return (row.uid, row.gid) == (other.uid, other.gid) and same_content(row, other)


def same_content(row: Row, other: Row) -> bool:
    """Whether two rows are of the same kind, permissions and bytes, as far as anybody can tell."""
    if row.mark[0] != other.mark[0] or row.target != other.target:
        return False
    hashed = {row.source, other.source} <= {Source.BLOB, Source.UNKEPT}
    if hashed or (row.source == other.source and row.source in (Source.GIT, Source.LINK)):
        return row.digest.rstrip(b"\0") == other.digest.rstrip(b"\0")
    if row.source == other.source == Source.KEPT:
        # Whoever writes an object that is there already has git renew its times.
        return row.mark[1:3] == other.mark[1:3]
    # Of a pipe or a device nothing is known but what it is.
    return row.source == other.source and (row.source == Source.SPECIAL or row.mark == other.mark)


def _require_no_room(error: TakebackError) -> None:
    if error.code != _NO_ROOM:
        raise error


def git_name(data: bytes, length: int) -> bytes:
    """The name that git gives to a blob of these bytes, by SHA-1 or SHA-256 as its length says."""
    hashed = _git_hash(len(data), length)
    hashed.update(data)
    return hashed.digest()


class _GitName:
    """Names an open file's bytes as git does, in constant memory."""

    def __init__(self, length: int) -> None:
        self._length = length

    def take(self, handle: int, size: int) -> tuple[str, int]:
        hashed, read = _git_hash(size, self._length), 0
        # What has grown meanwhile is not what git has.
        while read <= size and (part := os.read(handle, CHUNK)):
            hashed.update(part)
            read += len(part)
        return hashed.hexdigest(), read


def _git_hash(size: int, length: int) -> hashlib._Hash:
    hashed = hashlib.sha1(usedforsecurity=False) if length == 20 else hashlib.sha256()
    hashed.update(b"blob %d\0" % size)
    return hashed


def _link(folder: int, name: bytes, found: os.stat_result) -> Row | None:
    try:
        return _row(found, mark(found), Source.LINK, target=os.readlink(name, dir_fd=folder))
    except OSError:
        return None


def _racy(found: os.stat_result, source: Source) -> Row:
    return _row(found, mark(found), source, racy=True)


def _row(
    found: os.stat_result,
    known: Mark,
    source: Source,
    digest: bytes = b"",
    *,
    racy: bool = False,
    target: bytes = b"",
) -> Row:
    return Row(known, found.st_uid, found.st_gid, found.st_nlink > 1, racy, source, digest, target)
