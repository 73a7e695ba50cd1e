"""Contents: the store as capture's threads see it, where bytes go in many at a time."""

from __future__ import annotations

from takeback_acts.files.accounts import BASELINE, Account
from takeback_acts.files.packs.store import BlobStore


class StoredContents:
    """Bytes kept by their SHA-256, for worker threads, one at a time.

    What was put is durable after `sync` alone, and from then on for the baseline to hold.
    """

    def __init__(self, packs: BlobStore) -> None:
        self._packs = packs
        self._account = BASELINE
        self._lease = packs.lease(*BASELINE)

    def keep_for(self, account: Account) -> None:
        """For whom all that follows is kept; what a look that failed put and did not sync is let go."""
        self._account = account
        self._renew()

    def put_file(self, handle: int, size: int) -> str:
        """Keeps an open file's bytes, `size` being a guess; answers their digest in hex."""
        return self._lease.keep_file(handle, size)[0]

    def put(self, data: bytes) -> str:
        """Keeps bytes; answers their digest in hex."""
        return self._lease.keep(data)

    def get(self, sha256: str) -> bytes:
        """Bytes made durable before, verified; raises `files.blob_missing`, `files.blob_corrupt`."""
        return self._packs.vault.reader.read(sha256)

    def sync(self) -> None:
        """Makes durable all that was put before."""
        self._lease.settle()
        # A sweep waits for the look to end before it asks the baseline.
        self._renew()

    def _renew(self) -> None:
        self._lease.close()
        self._lease = self._packs.lease(*self._account)
