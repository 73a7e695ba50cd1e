"""Contents: the store as capture's threads see it, where bytes go in many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from takeback_acts.files.blobs import Blobs

T = TypeVar("T")


class StoredContents:
    """Bytes kept by their SHA-256, for worker threads; made on the event loop that the store runs on.

    What was put is durable after `sync` alone. One thread at a time.
    """

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._loop = asyncio.get_running_loop()
        self._intake = blobs.intake(self._keep)

    def put_file(self, handle: int, size: int) -> str:
        """Keeps an open file's bytes from where it stands; answers their digest in hex."""
        return self._intake.file(handle, size)[0]

    def put(self, data: bytes) -> str:
        """Keeps bytes; answers their digest in hex."""
        return self._intake.data(data)

    def get(self, sha256: str) -> bytes:
        """Kept bytes, verified; raises NotFoundError `files.blob_missing`, `files.blob_corrupt`."""
        if sha256 in self._intake.small:
            return self._intake.small[sha256]
        found = self._wait(self._blobs.fetch([sha256]))
        return found[sha256] if sha256 in found else self._blobs.files.read(sha256)

    def sync(self) -> None:
        """Makes durable all that was put before."""
        waiting, self._intake = self._intake.small, self._blobs.intake(self._keep)
        if waiting:
            self._keep(waiting)

    def _keep(self, small: dict[str, bytes]) -> None:
        self._wait(self._blobs.keep(small))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
