"""Usage: how much is kept, for whom, and how much there may be."""

from __future__ import annotations

import threading
from collections import Counter
from math import inf
from typing import NamedTuple

from takeback_acts.files.packs import failures


class Room(NamedTuple):
    """How many times the limits may be filled: that of all together, and that of one owner."""

    total: float = 1.0
    own: float = 1.0


LIMITED = Room()
UNLIMITED = Room(inf, inf)


class Usage:
    """`total` is bytes on disk, what nobody needs any more included; `owners` has what is kept for each."""

    def __init__(self, limit: int, owner_limit: int) -> None:
        self.total = 0
        self.owners: Counter[str] = Counter()
        self._limit = limit
        self._owner_limit = owner_limit
        self._lock = threading.Lock()

    def charge(self, owner: str, size: int, room: Room = LIMITED) -> None:
        """Takes room before anything is written; raises TakebackError `blobs.full`, `blobs.agent_full`."""
        with self._lock:
            used = self.owners[owner]
            if self._limit and self.total + size > self._limit * room.total:
                raise failures.full(self._limit, self.total, size)
            if self._owner_limit and used + size > self._owner_limit * room.own:
                raise failures.owner_full(owner, self._owner_limit, used, size)
            self.total += size
            self.owners[owner] += size

    def give_back(self, owner: str, size: int) -> None:
        """Room that was taken for what was not written after all, or is gone from the disk."""
        with self._lock:
            self.total -= size
            self.owners[owner] -= size

    def claim(self, owner: str, room: Room) -> Claim:
        """Room for something whose size is not known for sure before it is written."""
        return Claim(self, owner, room)

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

    def __init__(self, usage: Usage, owner: str, room: Room) -> None:
        self.size = 0
        self._usage = usage
        self._owner = owner
        self._room = room

    def cover(self, size: int) -> None:
        """Makes sure that so much is taken; raises what `Usage.charge` raises."""
        if size > self.size:
            self._usage.charge(self._owner, size - self.size, self._room)
            self.size = size

    def settle(self, size: int) -> None:
        """Gives back what was taken beyond this."""
        self._usage.give_back(self._owner, self.size - size)
        self.size = size
