"""Checking: what is kept is read and compared with its name, all of it or a part from all over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from takeback.errors import TakebackError
from takeback_acts.files.packs import mending, record
from takeback_acts.files.packs.apart import Apart
from takeback_acts.files.packs.catalog import Catalog
from takeback_acts.files.packs.index import BROKEN, Entry
from takeback_acts.files.packs.reading import Reader


@dataclass
class Checked:
    """How many blobs and plain bytes were read; the digests of those that are damaged or gone.

    A blob of which another copy is whole is neither.
    """

    blobs: int = 0
    bytes: int = 0
    damaged: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def check(catalog: Catalog, reader: Reader, files: Apart, most: int | None = None) -> Checked:
    """Reads everything, or blobs from all over up to about so many bytes; blocks. Raises OSError.

    Of those that it does not read it tells what is known already: that a file is gone or has another size.
    """
    result = Checked()
    mending.mend(catalog)
    step = 1 if most is None else 1 + catalog.usage.total // max(1, most)
    for number, entry in enumerate(_entries(catalog)):
        whole = number % step == 0 and (most is None or entry.length <= most)
        sound = _sound(reader, entry) if whole else _seems_sound(catalog, files, entry)
        if entry.segment not in catalog.volumes:
            continue  # rewritten meanwhile; its copy is newer than this check
        if whole:
            result.blobs += 1
            result.bytes += entry.length
        if sound is None:
            result.missing.append(entry.digest.hex())
        elif not sound:
            catalog.broken.add((entry.segment, entry.offset))
            if catalog.find(entry.digest) is None:
                result.damaged.append(entry.digest.hex())
    return result


def _sound(reader: Reader, entry: Entry) -> bool | None:
    try:
        return reader.verify(entry)
    except TakebackError:
        return False


def _seems_sound(catalog: Catalog, files: Apart, entry: Entry) -> bool | None:
    if entry.flags & BROKEN or (entry.segment, entry.offset) in catalog.broken:
        return False
    if not entry.flags & record.APART:
        return True
    size = files.size(entry.digest.hex())
    return None if size is None else size == entry.length


def _entries(catalog: Catalog) -> Iterator[Entry]:
    for packed in list(catalog.fresh.values()):
        yield Entry.unpack(packed)
    for volume in catalog.sealed():
        own = mending.own_index(catalog, volume)
        for entry in own.entries() if own is not None else ():
            if not volume.is_dead(entry.slot):
                yield entry
