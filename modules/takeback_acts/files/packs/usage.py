"""Usage: how much is kept, for whom, and how much there may be."""

from __future__ import annotations

import threading
from collections import Counter

from takeback_acts.files.packs import failures


class Usage:
    """`total` is bytes on disk, what nobody needs any more included; `owners` has what is kept for each."""

    def __init__(self, limit: int, owner_limit: int) -> None:
        self.total = 0
        self.owners: Counter[str] = Counter()
        self._limit = limit
        self._owner_limit = owner_limit
        self._lock = threading.Lock()

    def charge(self, owner: str, size: int) -> None:
        """Takes room before anything is written; raises TakebackError `blobs.full`, `blobs.agent_full`."""
        with self._lock:
            if self._limit and self.total + size > self._limit:
                raise failures.full(self._limit)
            if self._owner_limit and self.owners[owner] + size > self._owner_limit:
                raise failures.owner_full(owner, self._owner_limit)
            self.total += size
            self.owners[owner] += size

    def give_back(self, owner: str, size: int) -> None:
        """Room that was taken for what was not written after all, or is gone from the disk."""
        with self._lock:
            self.total -= size
            self.owners[owner] -= size

    def claim(self, owner: str) -> Claim:
        """Room for something whose size is not known for sure before it is written."""
        return Claim(self, owner)

    def note(self, owner: str, size: int) -> None:
        """What is there already when the store is opened, or is kept no more; limits don't matter."""
        with self._lock:
            self.owners[owner] += size

    def resize(self, size: int) -> None:
        """The disk holds so much more, or less, that is nobody's."""
        with self._lock:
            self.total += size


class Claim:
    """Room taken for one file, more of it as the file turns out larger."""

    def __init__(self, usage: Usage, owner: str) -> None:
        self.size = 0
        self._usage = usage
        self._owner = owner

    def cover(self, size: int) -> None:
        """Makes sure that so much is taken; raises what `Usage.charge` raises."""
        if size > self.size:
            self._usage.charge(self._owner, size - self.size)
            self.size = size

    def settle(self, size: int) -> None:
        """Gives back what was taken beyond this."""
        self._usage.give_back(self._owner, self.size - size)
        self.size = size
