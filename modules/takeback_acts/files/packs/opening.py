"""Opening: what the folder holds, and what a crash left of the last segment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from takeback import faults
from takeback_acts.files.packs import deaths, disk, index, runs, sealing, segment
from takeback_acts.files.packs.catalog import Catalog, Volume
from takeback_acts.files.packs.index import About, Entry, Index
from takeback_acts.files.packs.segment import Found, Segment
from takeback_acts.files.packs.settings import PackSettings


def load(catalog: Catalog, settings: PackSettings) -> Segment | None:
    """Fills the catalog; answers the segment to append to, where one is not full yet. Raises OSError.

    A segment that has a whole index is not read at all; the others from the last checkpoint on.
    """
    folder = catalog.folder
    for left in folder.glob("*" + disk.TEMP):
        left.unlink()
    indexes = {
        number: Index.open(path.with_suffix(index.SUFFIX)) for number, path in _segments(folder).items()
    }
    whole = {number: one for number, one in indexes.items() if one is not None and one.about.sealed}
    for number in _replaced(whole):
        _unlink(folder, number)
        indexes.pop(number, None)
        whole.pop(number, None)
    catalog.skip(max(_numbers(folder), default=0))
    for number, one in whole.items():
        _know(catalog, Volume(folder, number, one.about.upto), one)
    _cover(catalog, whole)
    return _resume(catalog, {number: one for number, one in indexes.items() if number not in whole}, settings)


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


def _segments(folder: Path) -> dict[int, Path]:
    found = {}
    for path in sorted(folder.glob("*" + segment.SUFFIX)):
        if path.stem.isdecimal():
            found[int(path.stem)] = path
    for path in [*folder.glob("*" + index.SUFFIX), *folder.glob("*.dead")]:
        if path.stem.isdecimal() and int(path.stem) not in found:
            path.unlink()  # a rewriting was cut short
    return found


def _numbers(folder: Path) -> Iterator[int]:
    return (int(path.stem) for path in folder.iterdir() if path.stem.isdecimal())


def _replaced(whole: dict[int, Index]) -> set[int]:
    return {number for one in whole.values() for number in one.about.replaces}


def _unlink(folder: Path, number: int) -> None:
    """The segment goes first: an index alone is nothing, a segment alone would be read anew."""
    path = segment.path(folder, number)
    for gone in (path, path.with_suffix(index.SUFFIX), path.with_suffix(".dead")):
        gone.unlink(missing_ok=True)
        faults.point("packs.unlinked")


def unlink(catalog: Catalog, numbers: list[int]) -> None:
    """Removes segments that are forgotten, with all that belongs to them."""
    for number in numbers:
        _unlink(catalog.folder, number)


def _know(catalog: Catalog, volume: Volume, one: Index) -> None:
    """Counts what a sealed segment holds."""
    volume.owners = list(one.about.owners)
    catalog.volumes[volume.number] = volume
    volume.count = one.about.count
    volume.size = volume.path.stat().st_size  # what a torn write left behind its end takes room too
    catalog.usage.resize(volume.size + one.about.apart)
    for owner, used in zip(volume.owners, one.about.usage, strict=True):
        catalog.usage.note(owner, used)
    gone = deaths.read(volume, one.about)
    if gone:
        volume.dead = bytearray(one.about.count)
    for slot in gone:
        entry = one.entry(slot)
        owner = volume.owners[entry.owner]
        volume.dead[slot] = 1  # type: ignore[index]
        catalog.usage.note(owner, -sealing.weight(entry, owner))
        catalog.usage.resize(-sealing.apart(entry))


def _cover(catalog: Catalog, whole: dict[int, Index]) -> None:
    """Lets each segment be found by the largest run that has it, or by its own index."""
    covered: set[int] = set()
    for path in sorted(catalog.folder.glob("*" + runs.SUFFIX), reverse=True):
        run = Index.open(path)
        there = set() if run is None else {number for number in run.about.segments if number in whole}
        if run is None or there <= covered or _renewed(catalog, run, whole):
            path.unlink()
            continue
        covered |= there
        catalog.add_indexes([run])
    for number, one in whole.items():
        if number not in covered:
            catalog.add_indexes([one])


def _renewed(catalog: Catalog, run: Index, whole: dict[int, Index]) -> bool:
    """Whether a segment's own index was lost since, so that the run's slots may not be its any more."""
    there = _segments(catalog.folder)
    return any(number in there and number not in whole for number in run.about.segments)


def _resume(catalog: Catalog, unsealed: dict[int, Index | None], settings: PackSettings) -> Segment | None:
    """Reads the segments that are not sealed, and seals all but the last, and that too when it is full."""
    last = max(unsealed, default=0)
    for number in sorted(unsealed):
        read = _read(catalog, number, unsealed[number])
        if read is None:
            continue
        volume, seed, entries = read
        room = volume.size < settings.segment and len(entries) < settings.records
        if number == last and room:
            catalog.volumes[number] = volume
            catalog.open_number = number
            catalog.fresh = entries
            _count(catalog, volume, entries)
            return Segment.resume(number, volume.path, seed, volume.size)
        sealing.write_index(volume, seed, volume.size, entries.values(), sealed=True)
        one = sealing.opened(volume)
        _know(catalog, volume, one)
        catalog.add_indexes([one])
    return None


def _count(catalog: Catalog, volume: Volume, entries: dict[bytes, bytes]) -> None:
    catalog.usage.resize(volume.size)
    for packed in entries.values():
        entry = Entry.unpack(packed)
        owner = volume.owners[entry.owner]
        catalog.usage.note(owner, sealing.weight(entry, owner))
        catalog.usage.resize(sealing.apart(entry))


def _read(
    catalog: Catalog, number: int, noted: Index | None
) -> tuple[Volume, int, dict[bytes, bytes]] | None:
    """A segment that is not sealed: what its checkpoint lists and what comes after; None when it is none."""
    path = segment.path(catalog.folder, number)
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
    volume = Volume(catalog.folder, number, found.end)
    entries: dict[bytes, bytes] = {}
    if noted is not None and good:
        volume.owners = list(noted.about.owners)
        entries = {entry.digest: entry.pack() for entry in noted.entries()}
    return volume, seed, _entries(volume, found.found, entries)


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
