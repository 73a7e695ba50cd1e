"""Keeping: a lease holds blobs from the moment they are handed over until what names them is durable."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from types import TracebackType

from takeback_acts.files.packs import failures
from takeback_acts.files.packs.apart import Incoming, copy
from takeback_acts.files.packs.parcel import Parcel, Wanted
from takeback_acts.files.packs.record import APART
from takeback_acts.files.packs.usage import LIMITED, Room
from takeback_acts.files.packs.vault import Vault, cost
from takeback_acts.files.reading import digest as digest_of
from takeback_acts.files.reading import write_all

_PORTION = 2 << 20
_PARCELS = 8
_LONGEST_OWNER = 255


class Lease:
    """Blobs that no sweep takes away before the lease ends, kept for one owner (a label) within some room.

    Leave it once the row that names the blobs is durable, and write that row only after `settle` or
    `durable`, which is for the event loop; all else is for any thread, though large blobs block it. Keeping
    raises TakebackError `blobs.full` and `blobs.agent_full` before anything is written, `blobs.closed`, and
    `blobs.no_space`, `blobs.denied`, `blobs.io` where the disk fails; what was durable before stays.
    """

    def __init__(self, vault: Vault, owner: str, room: Room = LIMITED) -> None:
        if not 0 < len(owner.encode()) <= _LONGEST_OWNER:
            raise ValueError("an owner has 1 to 255 bytes")
        self._vault = vault
        self._owner = owner
        self._room = room
        self._lock = threading.Lock()
        self._pinned: set[bytes] = set()
        self._wanted: list[Wanted] = []
        self._size = 0
        self._parcels: list[Parcel] = []
        self._handed = 0
        self._barrier: Parcel | None = None

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def keep(self, data: bytes) -> str:
        """Keeps bytes; answers their digest. They are not durable before `settle` or `durable`."""
        sha256, wanted = self._prepared(data)
        self._add(wanted)
        return sha256

    def keep_all(self, blobs: Sequence[bytes]) -> list[str]:
        """Keeps them all, or when there is no room for all, none. They are not durable before `settle`."""
        prepared: list[tuple[str, Wanted | None]] = []
        try:
            prepared.extend(map(self._prepared, blobs))
        except BaseException:
            for _, wanted in prepared:
                self._give_back(wanted)
            raise
        left = [wanted for _, wanted in reversed(prepared)]
        try:
            while left:
                self._add(left.pop())
        except BaseException:
            for wanted in left:
                self._give_back(wanted)
            raise
        return [sha256 for sha256, _ in prepared]

    def keep_file(self, handle: int, size: int) -> tuple[str, int]:
        """Keeps an open file's bytes from its beginning, `size` being a guess; answers digest and size.

        Large ones in constant memory, by a clone where the file system can.
        """
        small = self._vault.settings.small
        if size <= small:
            data = _up_to(handle, size, small + 1)
            if len(data) <= small:
                return self.keep(data), len(data)
        return self._keep_apart(handle, size)

    def holds(self, sha256: str) -> bool:
        """Whether a blob is there, read and found whole; the lease holds it from now on even where not."""
        digest = bytes.fromhex(sha256)
        self._pin(digest)
        return self._vault.sound(digest)

    def settle(self) -> None:
        """Blocks until everything kept so far is durable."""
        for parcel in self._all():
            parcel.wait()

    async def durable(self) -> None:
        """Waits until everything kept so far is durable."""
        for parcel in self._all():
            await parcel.reached()

    def close(self) -> None:
        """Lets go of the blobs, and forgets what was not settled. A second close does nothing."""
        with self._lock:
            wanted, self._wanted, self._size = self._wanted, [], 0
        for one in wanted:
            self._give_back(one)
        pinned, self._pinned = self._pinned, set()
        self._vault.catalog.pins.release(pinned)

    def _prepared(self, data: bytes) -> tuple[str, Wanted | None]:
        """The digest, and the record to be written with its room taken, or None when the blob is there."""
        self._vault.require_open()
        sha256 = digest_of(data)
        digest = bytes.fromhex(sha256)
        self._pin(digest)
        if self._vault.sound(digest):
            return sha256, None
        if len(data) > self._vault.settings.small:
            wanted = self._vault.told(digest, len(data), self._owner)._replace(payload=data)
        else:
            wanted = self._vault.wanted(digest, data, self._owner)
        self._vault.usage.charge(self._owner, cost(wanted), self._room)
        return sha256, wanted

    def _add(self, wanted: Wanted | None) -> None:
        if wanted is None:
            return
        if wanted.head.flags & APART and wanted.payload:
            wanted = self._apart_from(wanted)
        with self._lock:
            self._wanted.append(wanted)
            self._size += wanted.head.size
            if self._size > _PORTION:
                self._hand(now=False)
        self._throttle()

    def _apart_from(self, wanted: Wanted) -> Wanted:
        """Writes large bytes that are in memory to a file of their own."""
        data, sha256 = wanted.payload, wanted.head.digest.hex()

        def fill(target: int) -> tuple[str, int]:
            write_all(target, data)
            return sha256, len(data)

        try:
            with failures.reported(self._vault.catalog.folder):
                self._vault.files.name(self._vault.files.receive(fill))
        except BaseException:
            self._give_back(wanted)
            raise
        return wanted._replace(payload=b"")

    def _keep_apart(self, handle: int, size: int) -> tuple[str, int]:
        self._vault.require_open()
        claim = self._vault.usage.claim(self._owner, self._room)
        files = self._vault.files
        try:
            claim.cover(size)
            with failures.reported(self._vault.catalog.folder):
                incoming = files.receive(lambda target: copy(handle, target, claim.cover))
                wanted = self._named(incoming)
            if wanted is not None:
                claim.cover(cost(wanted))
        except BaseException:
            claim.settle(0)
            raise
        claim.settle(cost(wanted) if wanted is not None else 0)
        if wanted is not None:
            self._add(wanted)
        return incoming.sha256, incoming.size

    def _named(self, incoming: Incoming) -> Wanted | None:
        digest = bytes.fromhex(incoming.sha256)
        self._pin(digest)
        if self._vault.sound(digest):
            incoming.path.unlink()
            return None
        self._vault.files.name(incoming)
        return self._vault.told(digest, incoming.size, self._owner)

    def _give_back(self, wanted: Wanted | None) -> None:
        if wanted is not None:
            self._vault.usage.give_back(self._owner, cost(wanted))

    def _hand(self, *, now: bool) -> None:
        wanted, self._wanted, self._size = self._wanted, [], 0
        self._handed += 1
        self._parcels += self._vault.hand(wanted, now=now)

    def _all(self) -> list[Parcel]:
        """Hands over the rest; everything that has to be waited for."""
        with self._lock:
            self._handed, self._barrier = 0, None  # whoever asks waits for all of it
            self._parcels = [parcel for parcel in self._parcels if not parcel.done or parcel.error]
            if self._wanted:
                self._hand(now=True)
            elif self._parcels:
                self._parcels.append(self._vault.barrier())
            waiting = self._parcels
            self._parcels = [parcel for parcel in waiting if not parcel.done]
        return waiting

    def _throttle(self) -> None:
        """Where the disk is slower than whoever hands over, a thread waits, so that memory stays bounded."""
        if self._handed < _PARCELS or _on_loop():
            return
        self._handed = 0
        last, self._barrier = self._barrier, self._vault.barrier()
        if last is not None:
            last.ended()
        with self._lock:
            self._parcels = [parcel for parcel in self._parcels if not parcel.done or parcel.error]

    def _pin(self, digest: bytes) -> None:
        if digest not in self._pinned:
            self._vault.catalog.pins.add(digest)
            self._pinned.add(digest)


def _up_to(handle: int, size: int, most: int) -> bytes:
    """The first bytes of a file, no more than `most`; a read of its size and one saves memory."""
    os.lseek(handle, 0, os.SEEK_SET)
    data = os.read(handle, size + 1)
    while len(data) < most and (part := os.read(handle, most - len(data))):
        data += part
    return data[:most]


def _on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
