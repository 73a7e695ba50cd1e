"""Sealing: from the entries gathered while a segment was written to its index on disk."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence

from takeback_acts.files.packs import index, record
from takeback_acts.files.packs.catalog import Volume
from takeback_acts.files.packs.index import About, Entry, Index

_SLOT = struct.Struct("<I")
_PORTION = 1024


def write_index(
    volume: Volume,
    seed: int,
    upto: int,
    entries: Iterable[bytes],
    *,
    sealed: bool,
    replaces: Sequence[int] = (),
) -> None:
    """Writes a segment's index; `upto` is where the last record that it lists ends, durably."""
    ordered = sorted(entries)
    about = About([volume.number], seed, upto, sealed, list(volume.owners), replaces=list(replaces))
    about.usage = [0] * len(volume.owners)
    for entry in map(Entry.unpack, ordered):
        about.usage[entry.owner] += weight(entry, volume.owners[entry.owner])
        about.apart += apart(entry)
    index.write(volume.index_path, about, _numbered(ordered))


def opened(volume: Volume) -> Index:
    """The index that was just written; raises OSError when it is gone or damaged already."""
    found = Index.open(volume.index_path)
    if found is None:
        raise OSError(5, "the index can't be read back", str(volume.index_path))
    return found


def weight(entry: Entry, owner: str) -> int:
    """Bytes on disk that a blob takes, its own file included."""
    return record.size(len(owner.encode()), entry.stored) + apart(entry)


def apart(entry: Entry) -> int:
    """Bytes that a blob has in a file of its own."""
    return entry.length if entry.flags & record.APART else 0


def _numbered(ordered: Sequence[bytes]) -> Iterator[bytes]:
    for start in range(0, len(ordered), _PORTION):
        portion = enumerate(ordered[start : start + _PORTION], start=start)
        yield b"".join(packed[:36] + _SLOT.pack(slot) + packed[40:] for slot, packed in portion)
