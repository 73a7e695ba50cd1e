"""Recovering: a segment without a whole index is read, from its last checkpoint on or from its beginning."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from takeback_acts.files.packs import disk, index, sealing, segment
from takeback_acts.files.packs.catalog import Catalog, Volume
from takeback_acts.files.packs.index import About, Entry, Index
from takeback_acts.files.packs.segment import Found


class Read(NamedTuple):
    """A segment that is not sealed: what is known of it, its seed, and its packed entries by digest."""

    volume: Volume
    seed: int
    entries: dict[bytes, bytes]


def read(folder: Path, number: int) -> Read | None:
    """What a segment's checkpoint lists and what comes after; None when it is none. Raises OSError."""
    path = segment.path(folder, number)
    noted = Index.open(path.with_suffix(index.SUFFIX))
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        seed = segment.seed(handle)
        if seed is None:
            _set_aside(path, os.fstat(handle).st_size)
            return None
        good = noted is not None and _fits(noted.about, seed, os.fstat(handle).st_size) and noted.sound()
        start = noted.about.upto if noted is not None and good else segment.START
        found = segment.scan(handle, seed, start)
        if found.found:
            # A killed process leaves bytes that nobody has synced; they are counted on from now.
            disk.sync(handle)
    finally:
        os.close(handle)
    volume = Volume(folder, number, found.end)
    entries: dict[bytes, bytes] = {}
    if noted is not None and good:
        volume.owners = list(noted.about.owners)
        entries = {entry.digest: entry.pack() for entry in noted.entries()}
    return Read(volume, seed, _entries(volume, found.found, entries))


def _fits(about: About, seed: int, size: int) -> bool:
    return about.seed == seed and segment.START <= about.upto <= size


def _entries(volume: Volume, found: list[Found], entries: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Adds the records of a scan; a sound one goes before a torn one of the same name."""
    owners = {owner: number for number, owner in enumerate(volume.owners)}
    for offset, head, sound in found:
        if not sound and head.digest in entries:
            continue
        owner = head.owner.decode("utf-8", "replace")
        if owner not in owners:
            owners[owner] = len(owners)
            volume.owners.append(owner)
        flags = head.flags | (0 if sound else index.BROKEN)
        entry = Entry(
            head.digest,
            volume.number,
            len(entries),
            offset,
            head.stored,
            head.length,
            head.at,
            owners[owner],
            flags,
        )
        entries[head.digest] = entry.pack()
    return entries


def _set_aside(path: Path, size: int) -> None:
    """A file that was never begun is removed; one that holds something is kept for whoever can read it."""
    if size <= segment.START:
        path.unlink()
    else:
        path.rename(path.with_suffix(".unreadable"))


def rebuild(catalog: Catalog, volume: Volume) -> bool:
    """Makes a segment's index again from its records; False when the segment can't be read as one."""
    handle = os.open(volume.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        seed = segment.seed(handle)
        if seed is None:
            return False
        found = segment.scan(handle, seed, segment.START)
    finally:
        os.close(handle)
    fresh = Volume(catalog.folder, volume.number, found.end)
    entries = _entries(fresh, found.found, {})
    sealing.write_index(fresh, seed, found.end, entries.values(), sealed=True)
    with catalog.lock:
        volume.owners, volume.count, volume.dead = fresh.owners, len(entries), None
    return True
