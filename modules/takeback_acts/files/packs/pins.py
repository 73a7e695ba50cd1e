"""Pins: which blobs somebody is about to name, so that no sweep takes them away meanwhile.

A writer pins before it looks whether a blob is there; a sweep looks for pins before it drops one, under the
same lock. What is pinned at any time from before the live blobs were listed until the sweep's end stays:
its row may have come too late for the list.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable


class Pins:
    """Counted pins, by digest."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._held: Counter[bytes] = Counter()
        self._recent: set[bytes] | None = None

    def add(self, digest: bytes) -> None:
        """Pins a blob, whether or not it is there."""
        with self._lock:
            self._held[digest] += 1
            if self._recent is not None:
                self._recent.add(digest)

    def release(self, digests: Iterable[bytes]) -> None:
        """Takes one pin of each away."""
        with self._lock:
            for digest in digests:
                if self._held[digest] <= 1:
                    del self._held[digest]
                else:
                    self._held[digest] -= 1

    def held(self, digest: bytes) -> bool:
        """Whether a sweep has to leave this blob alone. To be asked with the lock held."""
        return digest in self._held or (self._recent is not None and digest in self._recent)

    def begin(self) -> None:
        """From now on until `end`, pins count even when they are released."""
        with self._lock:
            self._recent = set(self._held)

    def end(self) -> None:
        """The sweep is over."""
        with self._lock:
            self._recent = None
