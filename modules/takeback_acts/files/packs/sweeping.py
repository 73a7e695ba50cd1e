"""Sweeping: what nobody names any more is dropped; rewriting gives its room back.

Marks are made slot by slot, so that the live blobs are never all in memory. A blob is dropped at one
moment, under the lock that writers take to pin and to look: before it they find the blob and hold it, after
it they write anew.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from takeback import faults
from takeback_acts.files.packs import deaths, mending, record, sealing
from takeback_acts.files.packs.apart import Apart
from takeback_acts.files.packs.catalog import Catalog, Volume
from takeback_acts.files.packs.index import Entry, Index

_PORTION = 512


@dataclass
class Swept:
    """What a sweep dropped (or would have), in blobs and bytes; `kept` blobs are left.

    `reclaimed` bytes went back to the disk. `missing` live blobs are not in the store.
    """

    deleted: int = 0
    freed: int = 0
    kept: int = 0
    reclaimed: int = 0
    missing: int = 0


class Sweep:
    """One sweep; blocks. The caller holds `mending` and has begun to gather pins."""

    def __init__(self, catalog: Catalog, files: Apart, before: float) -> None:
        self.result = Swept()
        self._catalog = catalog
        self._files = files
        self._before = before
        self._marks: dict[int, bytearray] = {}
        self._fresh = dict(catalog.fresh)
        self._fresh_marks: set[bytes] = set()

    def prepare(self) -> None:
        """Looks at every index first: one damaged entry must not cost a blob. Raises OSError."""
        mending.mend(self._catalog)
        for volume in self._catalog.sealed():
            own = mending.own_index(self._catalog, volume)
            if own is not None:
                self._marks[volume.number] = bytearray(len(own))

    def mark(self, live: Iterable[str]) -> None:
        """Notes what is still needed."""
        for sha256 in live:
            digest = bytes.fromhex(sha256)
            entry = self._catalog.find(digest)
            places = [entry] if entry is not None else list(self._catalog.places(digest))
            self.result.missing += not places
            for place in places:
                self._mark(place)

    def _mark(self, entry: Entry) -> None:
        marks = self._marks.get(entry.segment)
        if marks is not None:
            marks[entry.slot] = 1
        else:
            self._fresh_marks.add(entry.digest)

    def foresee(self) -> None:
        """Counts what would be dropped."""
        for volume, own in self._volumes():
            for entry in self._unneeded(volume, own):
                self._count(volume, entry)
            self.result.kept += volume.kept
        for digest, packed in self._fresh.items():
            entry = Entry.unpack(packed)
            old = entry.at < self._before and digest not in self._fresh_marks
            if old and not self._catalog.pins.held(digest):
                self._count(self._catalog.volumes[entry.segment], entry)
        self.result.kept += len(self._fresh) - self.result.deleted

    def drop(self) -> None:
        """Drops it: in memory at once, then on disk."""
        for volume, own in self._volumes():
            gone = list(self._drop_from(volume, own))
            if gone:
                faults.point("packs.dropped")
                with suppress(OSError):  # on a full disk; they count as kept again after the next start
                    deaths.write(volume, own.about)
            self._remove_files(entry.digest for entry in gone if entry.flags & record.APART)
        self._remove_strays()
        self.result.kept = sum(volume.kept for volume in self._catalog.sealed()) + len(self._catalog.fresh)

    def _volumes(self) -> Iterator[tuple[Volume, Index]]:
        """Those that were there in `prepare`, one index open at a time."""
        for number in self._marks:
            volume = self._catalog.volumes[number]
            own = Index.open(volume.index_path)
            if own is not None:
                yield volume, own

    def _unneeded(self, volume: Volume, own: Index) -> Iterator[Entry]:
        for slot, marked in enumerate(self._marks[volume.number]):
            if not marked and not volume.is_dead(slot):
                entry = own.entry(slot)
                if entry.at < self._before and not self._catalog.pins.held(entry.digest):
                    yield entry

    def _drop_from(self, volume: Volume, own: Index) -> Iterator[Entry]:
        candidates = list(self._unneeded(volume, own))
        for start in range(0, len(candidates), _PORTION):
            with self._catalog.lock:
                for entry in candidates[start : start + _PORTION]:
                    if not self._catalog.pins.held(entry.digest):
                        self._kill(volume, entry)
                        yield entry
            time.sleep(0)  # lets whoever waits for the lock have it

    def _kill(self, volume: Volume, entry: Entry) -> None:
        if volume.dead is None:
            volume.dead = bytearray(volume.count)
        volume.dead[entry.slot] = 1
        owner = volume.owners[entry.owner]
        self._catalog.usage.note(owner, -sealing.weight(entry, owner))
        self._catalog.usage.resize(-sealing.apart(entry))
        self._count(volume, entry)

    def _count(self, volume: Volume, entry: Entry) -> None:
        self.result.deleted += 1
        self.result.freed += sealing.weight(entry, volume.owners[entry.owner])

    def _remove_files(self, digests: Iterable[bytes]) -> None:
        for digest in digests:
            self._remove_file(digest)

    def _remove_strays(self) -> None:
        """Files that got their name before a crash, and no record."""
        for sha256, made in list(self._files.names()):
            if made < self._before:
                self._remove_file(bytes.fromhex(sha256))

    def _remove_file(self, digest: bytes) -> None:
        with self._catalog.lock:
            if self._catalog.pins.held(digest) or any(self._catalog.places(digest)):
                return
            size = self._files.size(digest.hex()) or 0
            away = self._files.put_away(digest.hex())
        away.unlink(missing_ok=True)
        self.result.reclaimed += size
