"""The vault: the whole blob store for threads. One process has it open."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from takeback.errors import TakebackError
from takeback_acts.files.packs import checking, failures, mending, opening, record, rewriting, squeeze
from takeback_acts.files.packs.apart import Apart
from takeback_acts.files.packs.appender import Appender
from takeback_acts.files.packs.catalog import Catalog
from takeback_acts.files.packs.parcel import Parcel, Pending, Wanted
from takeback_acts.files.packs.reading import Reader
from takeback_acts.files.packs.record import Head
from takeback_acts.files.packs.settings import PackSettings
from takeback_acts.files.packs.sweeping import Sweep, Swept
from takeback_acts.files.packs.usage import Usage

_LOG = logging.getLogger("takeback.files")
_NEARLY_FULL = 0.75


@dataclass(frozen=True)
class Stats:
    """Blobs kept, bytes on disk, bytes kept by owner, segments, and what the limit is (0: none)."""

    blobs: int
    bytes: int
    owners: dict[str, int]
    segments: int
    limit: int


class Vault:
    """Bytes by their SHA-256. Thread-safe; calls block. Keeping goes through a lease (`keeping.Lease`)."""

    def __init__(self, folder: Path, settings: PackSettings, clock: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self.usage = Usage(settings.limit, settings.owner_limit)
        self.catalog = Catalog(folder, self.usage)
        self.files = Apart(folder)
        self.reader = Reader(self.catalog, self.files)
        self._clock = clock
        self._lock = -1
        self._closed = True
        self._appender = Appender(self.catalog, settings, self._merge_soon)
        self._upkeep = ThreadPoolExecutor(1, "takeback-packs-upkeep")

    def open(self) -> None:
        """Makes the folder where there is none, and clears up after a crash.

        Raises ConflictError `blobs.locked`, RefusedError `blobs.denied`, TakebackError `blobs.no_space`,
        `blobs.io`.
        """
        folder = self.catalog.folder
        with failures.reported(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = _locked(folder)
            try:
                self.files.prepare()
                self._appender.start(opening.load(self.catalog, self.settings))
            except BaseException:
                os.close(self._lock)
                raise
        self._closed = False
        self._merge_soon()

    def close(self) -> None:
        """Finishes everything that was handed over. A second close does nothing."""
        if self._closed:
            return
        self._closed = True
        with self.catalog.mending:  # a sweep is let come to its end
            self._appender.close()
        self._upkeep.shutdown()
        self.catalog.close()
        os.close(self._lock)

    def present(self, digest: bytes) -> bool:
        """Whether a blob is durably there; of a large one also whether its file is, not what that holds."""
        entry = self.catalog.find(digest)
        if entry is None:
            return False
        return not entry.flags & record.APART or self.files.size(digest.hex()) == entry.length

    def sound(self, digest: bytes) -> bool:
        """Whether a blob is there with the bytes of its name: whoever keeps it anew counts on that."""
        entry = self.catalog.find(digest)
        if entry is None:
            return False
        with suppress(TakebackError):
            if self.reader.verify(entry):
                return True
        self.catalog.broken.add((entry.segment, entry.offset))
        return False

    def wanted(self, digest: bytes, data: bytes, owner: str) -> Wanted:
        """The record of a small blob."""
        packed = squeeze.squeeze(data) if self.settings.compress else None
        payload, flags = (data, 0) if packed is None else (packed, record.SQUEEZED)
        return Wanted(self._head(flags, owner, len(data), len(payload), digest), owner, payload)

    def told(self, digest: bytes, size: int, owner: str) -> Wanted:
        """The record that tells of a blob with a file of its own."""
        return Wanted(self._head(record.APART, owner, size, 0, digest), owner, b"")

    def hand(self, wanted: list[Wanted], *, now: bool) -> list[Parcel]:
        """Hands records to the appender, but none that is there or on its way; answers what to wait for.

        Room was taken for each; it is given back for those that are not written. Raises `blobs.closed`.
        """
        self.require_open()
        new: list[Wanted] = []
        parcel, waiting = Parcel(new, now=now), []
        with self.catalog.lock:
            for one in wanted:
                digest, size = one.head.digest, cost(one)
                there = self._appender.pending.get(digest)
                if there is None and not self.present(digest):
                    self._appender.pending[digest] = Pending(parcel, one.owner, size)
                    new.append(one)
                    continue
                self.usage.give_back(one.owner, size)
                if there is not None and there.parcel not in waiting and there.parcel is not parcel:
                    waiting.append(there.parcel)
            if new or waiting:
                self._appender.hand(parcel)
                waiting.append(parcel)
        return waiting

    def barrier(self) -> Parcel:
        """A parcel that is through when everything handed over before is durable."""
        self.require_open()
        parcel = Parcel([], now=True)
        self._appender.hand(parcel)
        return parcel

    def sweep(self, live: Iterable[str], now: float, grace: float, *, dry_run: bool, share: float) -> Swept:
        """Drops blobs that are not live and were kept last longer ago than the grace, in seconds.

        Pins must have been gathered since before `live` was. Raises `blobs.denied`, `blobs.io`,
        `blobs.no_space`.
        """
        self.require_open()
        with failures.reported(self.catalog.folder), self.catalog.mending:
            if not dry_run:
                self._appender.roll()
            sweep = Sweep(self.catalog, self.files, now - grace)
            sweep.prepare()
            sweep.mark(live)
            if dry_run:
                sweep.foresee()
            else:
                sweep.drop()
                sweep.result.reclaimed += rewriting.rewrite(self.catalog, self.settings, self._share(share))
            return sweep.result

    def check(self, most: int | None = None) -> checking.Checked:
        """Reads every blob, or some from all over up to about so many bytes.

        Raises `blobs.denied`, `blobs.io`.
        """
        self.require_open()
        with failures.reported(self.catalog.folder):
            return checking.check(self.catalog, self.reader, self.files, most)

    def stats(self) -> Stats:
        """What there is now."""
        catalog = self.catalog
        with catalog.lock:
            blobs = len(catalog.fresh) + sum(volume.kept for volume in catalog.sealed())
            owners = {owner: size for owner, size in sorted(self.usage.owners.items()) if size}
            return Stats(blobs, self.usage.total, owners, len(catalog.volumes), self.settings.limit)

    def require_open(self) -> None:
        """Raises TakebackError `blobs.closed`."""
        if self._closed:
            raise failures.closed()

    def _share(self, share: float) -> float:
        """Near the limit every byte that nobody needs is worth a rewriting."""
        limit = self.settings.limit
        return 1.0 if limit and self.usage.total > _NEARLY_FULL * limit else share

    def _head(self, flags: int, owner: str, length: int, stored: int, digest: bytes) -> Head:
        return Head(flags, owner.encode(), int(self._clock()), length, stored, digest)

    def _merge_soon(self) -> None:
        with suppress(RuntimeError):  # it is being closed; the next start finds as many indexes
            self._upkeep.submit(self._merge)

    def _merge(self) -> None:
        try:
            mending.merge(self.catalog)
        except OSError as error:
            _LOG.warning("indexes of the kept bytes could not be merged: %s", error.strerror)


def cost(wanted: Wanted) -> int:
    """Bytes on disk that a record and the file it tells of take."""
    apart = wanted.head.length if wanted.head.flags & record.APART else 0
    return wanted.head.size + apart


def _locked(folder: Path) -> int:
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise failures.locked(folder) from None
    return handle
