"""Reading: a blob's bytes, verified against its name."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator

from takeback_acts.files.failures import blob_corrupt, blob_missing
from takeback_acts.files.packs import apart, failures, mending, record, squeeze
from takeback_acts.files.packs.apart import Apart
from takeback_acts.files.packs.catalog import Catalog
from takeback_acts.files.packs.disk import Handle
from takeback_acts.files.packs.index import BROKEN, Entry
from takeback_acts.files.reading import CHUNK, write_all

_LOST = {errno.EIO, errno.ENOENT}
_TRIES = 3


class Reader:
    """Thread-safe; calls block. Everything raises NotFoundError `files.blob_missing` and TakebackError
    `files.blob_corrupt`, and `blobs.denied` or `blobs.io` where the system does not let it read.
    """

    def __init__(self, catalog: Catalog, files: Apart) -> None:
        self._catalog = catalog
        self._files = files

    def read(self, sha256: str) -> bytes:
        """All of a blob."""
        entry, data = self._found(sha256)
        if data is not None:
            return data
        handle = self._opened(sha256, entry)
        parts = list(self._checked(sha256, entry, handle))
        return b"".join(parts)

    def stream(self, sha256: str) -> Iterator[bytes]:
        """A blob in portions and constant memory; that its bytes are the right ones is known at the end."""
        entry, data = self._found(sha256)
        if data is not None:
            yield data
            return
        yield from self._checked(sha256, entry, self._opened(sha256, entry))

    def require(self, sha256: str) -> None:
        """Raises what reading a blob would; it is read through."""
        for _ in self.stream(sha256):
            pass

    def copy_to(self, sha256: str, target: int) -> None:
        """Writes a blob into an open, empty file, by a clone where that can be; raises its OSErrors."""
        entry, data = self._found(sha256)
        if data is not None:
            write_all(target, data)
            return
        source = self._opened(sha256, entry)
        if apart.copy(source.number, target, _no_limit)[0] != sha256:
            raise self._broken(sha256, entry)

    def verify(self, entry: Entry) -> bool | None:
        """Whether an entry's bytes are those of its name; None when they are gone altogether."""
        sha256 = entry.digest.hex()
        if entry.flags & record.APART:
            if self._files.size(sha256) is None:
                return None
            handle = self._opened(sha256, entry)
            return _hash(handle) == sha256
        return self._bytes(entry) is not None

    def _found(self, sha256: str) -> tuple[Entry, bytes | None]:
        """A blob's place and, unless it is a file of its own, its bytes."""
        digest = bytes.fromhex(sha256)
        broken = False
        for _ in range(_TRIES):
            for entry in list(self._catalog.places(digest)):
                if entry.flags & record.APART and not entry.flags & BROKEN:
                    return entry, None
                data = self._bytes(entry)
                if data is not None:
                    return entry, data
                if entry.segment in self._catalog.volumes:
                    self._catalog.broken.add((entry.segment, entry.offset))
                    broken = True
            # Either a segment was rewritten between look-up and read, or an index is damaged, or it is so.
            with failures.reported(self._catalog.folder):
                if not mending.mend(self._catalog) and not self._moved(digest):
                    break
        raise blob_corrupt(sha256) if broken else blob_missing(sha256)

    def _moved(self, digest: bytes) -> bool:
        return self._catalog.find(digest) is not None

    def _bytes(self, entry: Entry) -> bytes | None:
        """A small blob's bytes, or None when they can't be had."""
        catalog = self._catalog
        try:
            handle, owner = catalog.handle(entry.segment), catalog.owner(entry)
            if handle is None:
                return None
            at = entry.offset + record.payload_at(len(owner.encode()))
            data = os.pread(handle.number, entry.stored, at)
        except KeyError:
            return None
        except OSError as error:
            if error.errno in _LOST:
                return None
            raise failures.failure(catalog.folder, error) from error
        plain = squeeze.restore(data, entry.length) if entry.flags & record.SQUEEZED else data
        return plain if plain is not None and hashlib.sha256(plain).digest() == entry.digest else None

    def _opened(self, sha256: str, entry: Entry) -> Handle:
        path = self._files.path(sha256)
        try:
            return Handle(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW))
        except FileNotFoundError:
            raise blob_missing(sha256) from None
        except OSError as error:
            raise failures.failure(path, error) from error

    def _checked(self, sha256: str, entry: Entry, handle: Handle) -> Iterator[bytes]:
        hashed = hashlib.sha256()
        try:
            while part := os.read(handle.number, CHUNK):
                hashed.update(part)
                yield part
        except OSError as error:
            raise self._broken(sha256, entry) from error
        if hashed.hexdigest() != sha256:
            raise self._broken(sha256, entry)

    def _broken(self, sha256: str, entry: Entry) -> Exception:
        """Notes that a blob can't be counted on, so that whoever keeps it again mends it."""
        self._catalog.broken.add((entry.segment, entry.offset))
        return blob_corrupt(sha256)


def _no_limit(size: int) -> None:
    """What comes out of the store takes none of its room."""


def _hash(handle: Handle) -> str:
    hashed = hashlib.sha256()
    try:
        while part := os.read(handle.number, CHUNK):
            hashed.update(part)
    except OSError:
        return ""
    return hashed.hexdigest()
