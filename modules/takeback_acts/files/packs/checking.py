"""Checking: every blob that is kept is read and compared with its name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from takeback.errors import TakebackError
from takeback_acts.files.packs import mending
from takeback_acts.files.packs.catalog import Catalog
from takeback_acts.files.packs.index import Entry
from takeback_acts.files.packs.reading import Reader


@dataclass
class Checked:
    """How many blobs and plain bytes were read; the digests of those that are damaged or gone."""

    blobs: int = 0
    bytes: int = 0
    damaged: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def check(catalog: Catalog, reader: Reader) -> Checked:
    """Reads everything; blocks for as long as that takes. Raises OSError."""
    result = Checked()
    mending.mend(catalog)
    for entry in _entries(catalog):
        try:
            sound = reader.verify(entry)
        except TakebackError:
            sound = False
        if entry.segment not in catalog.volumes:
            continue  # rewritten meanwhile; its copy is newer than this check
        result.blobs += 1
        result.bytes += entry.length
        if sound is None:
            result.missing.append(entry.digest.hex())
        elif not sound:
            catalog.broken.add((entry.segment, entry.offset))
            result.damaged.append(entry.digest.hex())
    return result


def _entries(catalog: Catalog) -> Iterator[Entry]:
    for packed in list(catalog.fresh.values()):
        yield Entry.unpack(packed)
    for volume in catalog.sealed():
        own = mending.own_index(catalog, volume)
        for entry in own.entries() if own is not None else ():
            if not volume.is_dead(entry.slot):
                yield entry
