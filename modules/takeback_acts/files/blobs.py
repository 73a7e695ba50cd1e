"""Blobs: bytes kept by their SHA-256; small ones as rows beside the log, large ones as files.

A small blob is queued for the store just before the act's own row, so that one commit makes both durable.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from takeback_acts.files import failures
from takeback_acts.files.large import LargeBlobs
from takeback_acts.files.reading import digest, read_all

if TYPE_CHECKING:
    import sqlite3

    from takeback.store import Store, Transaction

TABLES = """
CREATE TABLE files_blob (
    digest BLOB NOT NULL PRIMARY KEY,
    at INTEGER NOT NULL,
    bytes BLOB NOT NULL
);
CREATE TABLE files_manifest (
    digest BLOB NOT NULL PRIMARY KEY
) WITHOUT ROWID;
"""
_NOTE = "INSERT OR IGNORE INTO files_manifest VALUES (?)"
_FLUSH = 4 << 20
_IN_ONE_QUERY = 500
# A blob that is kept again counts as new, but is not rewritten each time, unless what is there is damaged.
_KEEP = """
INSERT INTO files_blob (digest, at, bytes) VALUES (?, ?, ?)
ON CONFLICT (digest) DO UPDATE SET at = excluded.at, bytes = excluded.bytes
WHERE at < excluded.at - 900 OR bytes IS NOT excluded.bytes
"""


class Intake:
    """What one act wants kept; usable in a thread, and handed to `insert` by the act.

    `digests` names all of it. Small bytes gather here until then, or until there are so many that
    `flush` has to take them.
    """

    def __init__(
        self, files: LargeBlobs, small: int, flush: Callable[[dict[str, bytes]], None] | None
    ) -> None:
        self.digests: set[str] = set()
        self.small: dict[str, bytes] = {}
        self._files = files
        self._limit = small
        self._flush = flush
        self._held = 0

    def file(self, handle: int, size: int) -> tuple[str, int]:
        """Keeps an open file's bytes from where it stands; answers digest and size."""
        if size > self._limit:
            sha256, size = self._files.add(handle)
            self.digests.add(sha256)
            return sha256, size
        data = read_all(handle, size)
        return self.data(data), len(data)

    def data(self, data: bytes) -> str:
        """Keeps bytes; answers their digest."""
        if len(data) > self._limit:
            sha256 = self._files.add_data(data)
        else:
            sha256 = digest(data)
            self._gather(sha256, data)
        self.digests.add(sha256)
        return sha256

    def _gather(self, sha256: str, data: bytes) -> None:
        if sha256 not in self.small:
            self.small[sha256] = data
            self._held += len(data)
        if self._held > _FLUSH and self._flush is not None:
            gathered, self.small, self._held = self.small, {}, 0
            self._flush(gathered)


class Blobs:
    """The content-addressed store. Everything but `files` is for the event loop's thread."""

    def __init__(self, store: Store, files: LargeBlobs, small: int) -> None:
        self.files = files
        self._store = store
        self._small = small

    def intake(self, flush: Callable[[dict[str, bytes]], None] | None = None) -> Intake:
        """A reader that keeps what it reads."""
        return Intake(self.files, self._small, flush)

    async def keep(self, small: Mapping[str, bytes]) -> None:
        """Makes small blobs durable by themselves."""
        await self._store.transaction(lambda tx: insert(tx, small, ()))

    async def fetch(self, digests: Collection[str]) -> dict[str, bytes]:
        """Those of the blobs that are rows, verified; raises TakebackError `files.blob_corrupt`."""
        if not digests:
            return {}
        found = await self._store.read(lambda db: _rows(db, digests))
        for sha256, data in found.items():
            if digest(data) != sha256:
                raise failures.blob_corrupt(sha256)
        return found

    async def has(self, digests: Collection[str]) -> set[str]:
        """Those of the blobs that are there, as a row or as a file."""
        if not digests:
            return set()
        found = await self._store.read(lambda db: _names(db, digests))
        return found | {sha256 for sha256 in digests if sha256 not in found and self.files.has(sha256)}


def insert(tx: Transaction, small: Mapping[str, bytes], manifests: Iterable[str]) -> None:
    """Keeps small blobs, and notes which blobs are manifests, whose entries count as named too."""
    at = int(time.time())
    tx.executemany(_KEEP, ((bytes.fromhex(sha256), at, data) for sha256, data in small.items()))
    tx.executemany(_NOTE, ((bytes.fromhex(sha256),) for sha256 in manifests))


def _rows(db: sqlite3.Connection, digests: Collection[str]) -> dict[str, bytes]:
    found = {}
    for asked in _portions(digests):
        marks = ",".join("?" * len(asked))
        for key, data in db.execute(f"SELECT digest, bytes FROM files_blob WHERE digest IN ({marks})", asked):
            found[bytes(key).hex()] = bytes(data)
    return found


def _names(db: sqlite3.Connection, digests: Collection[str]) -> set[str]:
    found: set[str] = set()
    for asked in _portions(digests):
        marks = ",".join("?" * len(asked))
        rows = db.execute(f"SELECT digest FROM files_blob WHERE digest IN ({marks})", asked)
        found.update(bytes(key).hex() for (key,) in rows)
    return found


def _portions(digests: Collection[str]) -> Iterable[list[bytes]]:
    keys = [bytes.fromhex(sha256) for sha256 in digests]
    return (keys[start : start + _IN_ONE_QUERY] for start in range(0, len(keys), _IN_ONE_QUERY))
