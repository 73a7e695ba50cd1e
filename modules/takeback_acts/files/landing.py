"""The landing: small blobs as rows, durable in one commit with the act that names them, until they are moved.

A blob is durable in the packs before its row goes. So whoever looks for it among the rows first and in the
packs then finds it, however far a move has come.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Container, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from anyio import Lock, to_thread

from takeback import faults
from takeback_acts.files import failures
from takeback_acts.files.packs.store import BlobStore
from takeback_acts.files.packs.usage import UNLIMITED
from takeback_acts.files.reading import digest

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
OWNERS = "ALTER TABLE files_blob ADD COLUMN owner TEXT NOT NULL DEFAULT 'module:files'"

_IN_ONE_QUERY = 500
_AT_ONCE = 64
_INSERT = "INSERT OR IGNORE INTO files_blob (digest, at, bytes, owner) VALUES (?, ?, ?, ?)"
_MEND = "UPDATE files_blob SET bytes = ?2 WHERE digest = ?1 AND bytes IS NOT ?2"
_NEXT = "SELECT rowid, digest, bytes, owner FROM files_blob WHERE rowid > ? ORDER BY rowid LIMIT ?"
_OLD = "SELECT digest, owner, length(bytes) FROM files_blob WHERE at < ?"


class _Row(NamedTuple):
    number: int
    sha256: str
    data: bytes
    owner: str


class Landing:
    """The rows. For the event loop's thread."""

    def __init__(self, store: Store, packs: BlobStore) -> None:
        self._store = store
        self._packs = packs
        # A sweep and a move must not both take a row for theirs.
        self._turn = Lock()

    async def open(self) -> None:
        """Counts what earlier processes left here towards the limits."""
        sql = "SELECT owner, sum(length(bytes)) FROM files_blob GROUP BY owner"
        for owner, size in await self._store.read(lambda db: db.execute(sql).fetchall()):
            self._packs.vault.usage.charge(owner, size, UNLIMITED)

    async def fetch(self, digests: Collection[str]) -> dict[str, bytes]:
        """Those of the blobs that are here, verified; raises TakebackError `files.blob_corrupt`."""
        if not digests:
            return {}
        found = await self._store.read(lambda db: _rows(db, digests))
        for sha256, data in found.items():
            if digest(data) != sha256:
                raise failures.blob_corrupt(sha256)
        return found

    async def count(self) -> int:
        """How many blobs are here."""
        return await self._store.read(_count)

    async def damaged(self) -> int:
        """How many rows are not what their name says; reads them all."""
        return await self._store.read(_damaged)

    async def move(self) -> int:
        """Moves what is here to the packs, but what is damaged; answers how many. Raises `blobs.*`."""
        moved = last = 0
        async with self._turn:
            while rows := await self._store.read(partial(_next, after=last)):
                last = rows[-1].number
                moved += await self._move(rows)
        return moved

    async def _move(self, rows: list[_Row]) -> int:
        with ExitStack() as leases:
            sound = await to_thread.run_sync(self._keep, rows, leases)
            faults.point("files.landing.kept")
            gone = await self._store.transaction(lambda tx: [row for row in sound if _delete(tx, row.sha256)])
            faults.point("files.landing.moved")
        for row in gone:
            self._packs.vault.usage.give_back(row.owner, len(row.data))
        return len(gone)

    def _keep(self, rows: list[_Row], leases: ExitStack) -> list[_Row]:
        """Makes the sound ones durable in the packs. Blocks."""
        sound = [row for row in rows if digest(row.data) == row.sha256]
        for owner, own in groupby(sorted(sound, key=_owner), key=_owner):
            lease = leases.enter_context(self._packs.lease(owner, UNLIMITED))
            lease.keep_all([row.data for row in own])
            lease.settle()
        return sound

    async def forget(self, live: Container[str], before: float, *, dry_run: bool) -> tuple[int, int]:
        """Removes rows that are not live, not held, and older than that; answers number and bytes.

        Pins must have been gathered since before `live` was.
        """
        async with self._turn:
            old = await self._store.read(lambda db: db.execute(_OLD, (int(before),)).fetchall())
            dead = [(bytes(key).hex(), owner, size) for key, owner, size in old]
            dead = [one for one in dead if one[0] not in live and not self._is_held(one[0])]
            if not dry_run:
                # Who keeps one of these meanwhile holds it before its own transaction: if that is through
                # it is seen here, and if not it will insert the row anew.
                dead = await self._store.transaction(
                    lambda tx: [one for one in dead if not self._is_held(one[0]) and _delete(tx, one[0])]
                )
                for _, owner, size in dead:
                    self._packs.vault.usage.give_back(owner, size)
        return len(dead), sum(size for _, _, size in dead)

    def _is_held(self, sha256: str) -> bool:
        catalog = self._packs.vault.catalog
        with catalog.lock:
            return catalog.pins.held(bytes.fromhex(sha256))


def insert(tx: Transaction, owner: str, small: Mapping[str, bytes]) -> set[str]:
    """Keeps small blobs; answers those that were not here."""
    at, fresh = int(time.time()), set()
    for sha256, data in small.items():
        key = bytes.fromhex(sha256)
        if tx.execute(_INSERT, (key, at, data, owner)).rowcount:
            fresh.add(sha256)
        else:
            tx.execute(_MEND, (key, data))
    return fresh


def _delete(tx: Transaction, sha256: str) -> bool:
    return tx.execute("DELETE FROM files_blob WHERE digest = ?", (bytes.fromhex(sha256),)).rowcount > 0


def _next(db: sqlite3.Connection, after: int) -> list[_Row]:
    found = db.execute(_NEXT, (after, _AT_ONCE))
    return [_Row(number, bytes(key).hex(), bytes(data), owner) for number, key, data, owner in found]


def _count(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM files_blob").fetchone()[0])


def _damaged(db: sqlite3.Connection) -> int:
    found = db.execute("SELECT digest, bytes FROM files_blob")
    return sum(digest(data) != bytes(key).hex() for key, data in found)


def _owner(row: _Row) -> str:
    return row.owner


def _rows(db: sqlite3.Connection, digests: Collection[str]) -> dict[str, bytes]:
    found = {}
    for asked in _portions(digests):
        marks = ",".join("?" * len(asked))
        for key, data in db.execute(f"SELECT digest, bytes FROM files_blob WHERE digest IN ({marks})", asked):
            found[bytes(key).hex()] = bytes(data)
    return found


def _portions(digests: Collection[str]) -> Iterable[list[bytes]]:
    keys = [bytes.fromhex(sha256) for sha256 in digests]
    return (keys[start : start + _IN_ONE_QUERY] for start in range(0, len(keys), _IN_ONE_QUERY))
