"""Sweeping: forgetting bytes that no act names any more."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from anyio import to_thread

from takeback.context import Context
from takeback_acts.files import trees
from takeback_acts.files.blobs import Blobs
from takeback_acts.files.large import LargeBlobs
from takeback_acts.files.models import Swept

if TYPE_CHECKING:
    import sqlite3

    from takeback.store import Store, Transaction

_PORTION = 500
# A blob that is kept again within a quarter of an hour keeps its time, so nothing that young may go.
_LEAST_GRACE = 1000.0


async def sweep(
    ctx: Context, store: Store, blobs: Blobs, grace_seconds: float, spared: Collection[str]
) -> Swept:
    """Removes what neither an act nor `spared` names and was last kept longer ago than the grace.

    A dry run only counts. A blob that is kept again meanwhile counts as new, so a sweep can't take it from
    under a writer.
    """
    before = time.time() - max(grace_seconds, _LEAST_GRACE)
    named = set((await ctx.call("undo.blobs", {})).digests)
    live = named | await _listed(store, blobs, named) | set(spared)
    rows = await store.read(lambda db: _dead(db, live, before))
    freed = sum(size for _, size in rows)
    if not ctx.dry_run:
        for start in range(0, len(rows), _PORTION):
            keys = [(key, int(before)) for key, _ in rows[start : start + _PORTION]]
            await store.transaction(lambda tx, keys=keys: _forget(tx, keys))  # type: ignore[misc]
    files: LargeBlobs = blobs.files
    count, size = await to_thread.run_sync(lambda: files.sweep(live, before, dry_run=ctx.dry_run))
    kept = await store.read(lambda db: int(db.execute("SELECT count(*) FROM files_blob").fetchone()[0]))
    left, _ = await to_thread.run_sync(files.total)
    gone = len(rows) + count if ctx.dry_run else 0
    return Swept(deleted=len(rows) + count, freed_bytes=freed + size, kept=kept + left - gone)


async def _listed(store: Store, blobs: Blobs, named: set[str]) -> set[str]:
    """What the manifests among the named blobs list."""
    rows = await store.read(lambda db: db.execute("SELECT digest FROM files_manifest").fetchall())
    live: set[str] = set()
    for manifest in {bytes(row[0]).hex() for row in rows} & named:
        small = await blobs.fetch([manifest])
        data = small.get(manifest)
        if data is None:
            data = await to_thread.run_sync(blobs.files.read, manifest)
        live |= {entry.state.sha256 for entry in trees.load(data) if entry.state.sha256}
    return live


def _dead(db: sqlite3.Connection, live: set[str], before: float) -> list[tuple[bytes, int]]:
    found = db.execute("SELECT digest, length(bytes) FROM files_blob WHERE at < ?", (int(before),))
    return [(bytes(key), size) for key, size in found if bytes(key).hex() not in live]


def _forget(tx: Transaction, keys: list[tuple[bytes, int]]) -> None:
    tx.executemany("DELETE FROM files_blob WHERE digest = ? AND at < ?", keys)
    tx.executemany("DELETE FROM files_manifest WHERE digest = ?", [(key,) for key, _ in keys])
