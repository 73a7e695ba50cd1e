"""The blob store for the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from anyio import CancelScope, to_thread

from takeback_acts.files.packs.checking import Checked
from takeback_acts.files.packs.keeping import Lease
from takeback_acts.files.packs.settings import PackSettings
from takeback_acts.files.packs.sweeping import Swept
from takeback_acts.files.packs.usage import LIMITED, Room
from takeback_acts.files.packs.vault import Stats, Vault

T = TypeVar("T")
Live = Callable[[], Awaitable[Iterable[str]]]


class BlobStore:
    """Bytes by their SHA-256 in hex, of any size. `vault` is the same for threads.

    `async with BlobStore(folder, settings) as blobs:`, then
    `with blobs.lease(owner) as lease: sha256 = lease.keep(data); await lease.durable()`, and within the lease
    the row that names it.
    """

    def __init__(
        self, folder: Path, settings: PackSettings | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.vault = Vault(folder, settings or PackSettings(), clock)
        self._sweeping = asyncio.Lock()

    async def open(self) -> None:
        """Raises ConflictError `blobs.locked`, RefusedError `blobs.denied`, `blobs.no_space`, `blobs.io`."""
        await _in_thread(self.vault.open)

    async def close(self) -> None:
        """Finishes what was handed over; a second close does nothing."""
        await _in_thread(self.vault.close)

    async def __aenter__(self) -> BlobStore:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def lease(self, owner: str, room: Room = LIMITED) -> Lease:
        """What keeps blobs for an owner, by its label."""
        return Lease(self.vault, owner, room)

    async def get(self, sha256: str) -> bytes:
        """A blob, verified; raises NotFoundError `files.blob_missing`, TakebackError `files.blob_corrupt`."""
        return await to_thread.run_sync(self.vault.reader.read, sha256)

    def has(self, sha256: str) -> bool:
        """Whether a blob is there now; who is about to name it asks a lease's `holds`."""
        return self.vault.present(bytes.fromhex(sha256))

    async def gc(
        self, live: Live, now: float, grace: float, *, dry_run: bool = False, share: float | None = None
    ) -> Swept:
        """Drops what is not live, not held, and was kept longer ago than `grace` seconds before `now`.

        `live` is called once leases are watched, so that a blob whose row comes too late for its answer is
        still held. Segments of which at most `share` is needed are rewritten (1 gives back every byte); a dry
        run only counts. Raises what `live` raises, `blobs.denied`, `blobs.io`, `blobs.no_space`.
        """
        vault = self.vault
        part = vault.settings.rewrite_below if share is None else share
        async with self._sweeping:
            vault.catalog.pins.begin()
            try:
                found = await live()
                return await _in_thread(lambda: vault.sweep(found, now, grace, dry_run=dry_run, share=part))
            finally:
                vault.catalog.pins.end()

    async def check(self, most: int | None = None) -> Checked:
        """Compares every blob with its name, or some from all over up to about so many bytes."""
        return await to_thread.run_sync(self.vault.check, most)

    def stats(self) -> Stats:
        """How much there is."""
        return self.vault.stats()


async def _in_thread(work: Callable[[], T]) -> T:
    """Goes through to the end, as half of it would be worse than late."""
    done: list[T] = []
    with CancelScope(shield=True):
        done.append(await to_thread.run_sync(work))
    return done[0]
