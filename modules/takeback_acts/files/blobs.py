"""Blobs: bytes kept by their SHA-256. The few of a small act land as rows beside the log, in the act's own
commit; all others go to the packs at once.
"""

from __future__ import annotations

from collections.abc import Collection
from types import TracebackType
from typing import TYPE_CHECKING, Any

from takeback_acts.files import landing
from takeback_acts.files.accounts import Account
from takeback_acts.files.landing import Landing
from takeback_acts.files.packs.store import BlobStore
from takeback_acts.files.reading import digest, read_all

if TYPE_CHECKING:
    from takeback.store import Job, Store, Transaction

# Beyond this a sync of the packs' own costs less than pages of the database do.
_MOST_BYTES = 256 * 1024
_MOST = 32


class Intake:
    """What one act keeps, as its reader: held against every sweep until `close`.

    Reading may happen in a thread. Then `durable`, `land` in the transaction that is committed no later than
    the row that names the blobs, and `close` once that row is durable. Keeping raises `blobs.full`,
    `blobs.agent_full`, and `blobs.no_space`, `blobs.denied`, `blobs.io` where the disk fails.
    """

    def __init__(self, packs: BlobStore, account: Account) -> None:
        # What is at hand of it, by digest.
        self.small: dict[str, bytes] = {}
        self._account = account
        self._vault = packs.vault
        self._lease = packs.lease(*account)
        self._held = 0
        self._landing: dict[str, bytes] = {}
        self._fresh: set[str] | None = None
        self._job: Job[Any] | None = None

    def __enter__(self) -> Intake:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def file(self, handle: int, size: int) -> tuple[str, int]:
        """Keeps an open file's bytes, `size` being a guess; answers digest and size."""
        if not self._lands(size):
            return self._lease.keep_file(handle, size)
        data = read_all(handle, size)
        return self.data(data), len(data)

    def data(self, data: bytes) -> str:
        """Keeps bytes; answers their digest."""
        if not self._lands(len(data)):
            return self._lease.keep(data)
        sha256 = digest(data)
        if sha256 not in self.small:
            if not self._lease.holds(sha256):
                self._vault.usage.charge(self._account.owner, len(data), self._account.room)
                self._landing[sha256] = data
            self.small[sha256] = data
            self._held += len(data)
        return sha256

    async def durable(self) -> None:
        """Waits until all that does not land is durable, and can be read."""
        await self._lease.durable()

    def land(self, tx: Transaction) -> None:
        """Keeps the rest as rows; on the store's writing thread."""
        self._fresh = landing.insert(tx, self._account.owner, self._landing)

    def rides(self, job: Job[Any]) -> None:
        """Tells which job calls `land`: what lands takes room if that is committed."""
        self._job = job

    def close(self) -> None:
        """Lets go of the blobs, and gives back the room for what did not land; again, it does nothing."""
        stay = self._landed()
        for sha256, data in self._landing.items():
            if sha256 not in stay:
                self._vault.usage.give_back(self._account.owner, len(data))
        self._landing = {}
        self._lease.close()

    def _lands(self, size: int) -> bool:
        small = size <= self._vault.settings.small
        return small and self._held + size <= _MOST_BYTES and len(self.small) < _MOST

    def _landed(self) -> Collection[str]:
        job = self._job
        if job is None or (job.settled and job.error is not None):
            return ()
        return self._landing.keys() if self._fresh is None else self._fresh


class Blobs:
    """The content-addressed store for the event loop; what threads may use is in `packs.vault`."""

    def __init__(self, store: Store, packs: BlobStore) -> None:
        self.packs = packs
        self.landing = Landing(store, packs)

    def intake(self, account: Account) -> Intake:
        """A reader that keeps what it reads."""
        return Intake(self.packs, account)

    async def read(self, sha256: str) -> bytes:
        """A blob, verified; raises NotFoundError `files.blob_missing`, TakebackError `files.blob_corrupt`."""
        landed = await self.landing.fetch([sha256])
        return landed[sha256] if landed else await self.packs.get(sha256)
