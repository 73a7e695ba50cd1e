"""Manifests: which blobs list what a folder held, so that what they list counts as named too."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from anyio import to_thread

from takeback_acts.files import trees
from takeback_acts.files.blobs import Blobs

if TYPE_CHECKING:
    from takeback.store import Store, Transaction

_NOTE = "INSERT OR IGNORE INTO files_manifest VALUES (?)"
_FORGET = (
    "DELETE FROM files_manifest WHERE digest = ?1 AND NOT EXISTS (SELECT 1 FROM files_blob WHERE digest = ?1)"
)


def note(tx: Transaction, digests: Iterable[str]) -> None:
    """Writes down that these blobs are manifests; no later than what names them."""
    tx.executemany(_NOTE, ((bytes.fromhex(sha256),) for sha256 in digests))


async def listed(store: Store, blobs: Blobs, named: Collection[str]) -> set[str]:
    """What the manifests among these blobs list, and those among that."""
    found: set[str] = set()
    known = await _known(store)
    waiting = known & set(named)
    while waiting:
        manifest = waiting.pop()
        known.discard(manifest)
        for entry in trees.load(await blobs.read(manifest)):
            found |= {entry.state.sha256, entry.state.manifest}
            if entry.state.manifest in known:
                waiting.add(entry.state.manifest)
    return found - {""}


async def forget_gone(store: Store, blobs: Blobs) -> None:
    """Forgets those whose bytes are kept no more."""
    present = blobs.packs.has
    known = await _known(store)
    gone = await to_thread.run_sync(lambda: [sha256 for sha256 in known if not present(sha256)])

    def forget(tx: Transaction) -> None:
        # Asked again here, where also who keeps one anew notes it: its bytes are there before.
        keys = [(bytes.fromhex(sha256),) for sha256 in gone if not present(sha256)]
        tx.executemany(_FORGET, keys)

    if gone:
        await store.transaction(forget)


async def _known(store: Store) -> set[str]:
    rows = await store.read(lambda db: db.execute("SELECT digest FROM files_manifest").fetchall())
    return {bytes(row[0]).hex() for row in rows}
