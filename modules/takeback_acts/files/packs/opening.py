"""Opening: what the folder holds, and what a crash left of the last segment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from takeback import faults
from takeback_acts.files.packs import deaths, disk, index, recovering, runs, sealing, segment
from takeback_acts.files.packs.catalog import Catalog, Volume
from takeback_acts.files.packs.index import About, Entry, Index
from takeback_acts.files.packs.segment import Segment
from takeback_acts.files.packs.settings import PackSettings


def load(catalog: Catalog, settings: PackSettings) -> Segment | None:
    """Fills the catalog; answers the segment to append to, where one is not full yet. Raises OSError.

    A segment that has a whole index is not read at all; the others from the last checkpoint on.
    """
    folder = catalog.folder
    for left in folder.glob("*" + disk.TEMP):
        left.unlink()
    indexes = {
        number: Index.about_of(path.with_suffix(index.SUFFIX)) for number, path in _segments(folder).items()
    }
    whole = {number: about for number, about in indexes.items() if about is not None and about.sealed}
    for number in _replaced(whole):
        _unlink(folder, number)
        indexes.pop(number, None)
        whole.pop(number, None)
    catalog.skip(max(_numbers(folder), default=0))
    for number, about in whole.items():
        _know(catalog, Volume(folder, number, about.upto), about)
    _cover(catalog, set(whole))
    return _resume(catalog, [number for number in indexes if number not in whole], settings)


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


def _replaced(whole: dict[int, About]) -> set[int]:
    return {number for about in whole.values() for number in about.replaces}


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


def _know(catalog: Catalog, volume: Volume, about: About) -> None:
    """Counts what a sealed segment holds."""
    volume.owners = list(about.owners)
    catalog.volumes[volume.number] = volume
    volume.count = about.count
    volume.size = volume.path.stat().st_size  # what a torn write left behind its end takes room too
    catalog.usage.resize(volume.size + about.apart)
    for owner, used in zip(volume.owners, about.usage, strict=True):
        catalog.usage.note(owner, used)
    gone = deaths.read(volume, about)
    own = Index.open(volume.index_path) if gone else None
    if own is None:
        return
    volume.dead = bytearray(about.count)
    for slot in gone:
        entry = own.entry(slot)
        owner = volume.owners[entry.owner]
        volume.dead[slot] = 1
        catalog.usage.note(owner, -sealing.weight(entry, owner))
        catalog.usage.resize(-sealing.apart(entry))


def _cover(catalog: Catalog, whole: set[int]) -> None:
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
    catalog.add_indexes([sealing.opened(catalog.volumes[number]) for number in sorted(whole - covered)])


def _renewed(catalog: Catalog, run: Index, whole: set[int]) -> bool:
    """Whether a segment's own index was lost since, so that the run's slots may not be its any more."""
    there = _segments(catalog.folder)
    return any(number in there and number not in whole for number in run.about.segments)


def _resume(catalog: Catalog, unsealed: list[int], settings: PackSettings) -> Segment | None:
    """Reads the segments that are not sealed, and seals all but the last, and that too when it is full."""
    last = max(unsealed, default=0)
    for number in sorted(unsealed):
        read = recovering.read(catalog.folder, number)
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
        _know(catalog, volume, one.about)
        catalog.add_indexes([one])
    return None


def _count(catalog: Catalog, volume: Volume, entries: dict[bytes, bytes]) -> None:
    catalog.usage.resize(volume.size)
    for packed in entries.values():
        entry = Entry.unpack(packed)
        owner = volume.owners[entry.owner]
        catalog.usage.note(owner, sealing.weight(entry, owner))
        catalog.usage.resize(sealing.apart(entry))
