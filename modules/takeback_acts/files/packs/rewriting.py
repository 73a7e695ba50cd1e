"""Rewriting: what is needed of some segments is copied into a new one, and then they are removed.

The new segment's index says which ones it replaces, so that a start after a crash finishes the removal.
Before the new segment has its name nothing has happened.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from typing import NamedTuple

from takeback import faults
from takeback_acts.files.packs import disk, mending, opening, record, sealing, segment
from takeback_acts.files.packs.catalog import Catalog, Volume
from takeback_acts.files.packs.index import BROKEN, Entry, Index
from takeback_acts.files.packs.record import Head
from takeback_acts.files.packs.settings import PackSettings
from takeback_acts.files.reading import write_all

_LOG = logging.getLogger("takeback.files")
_AT_ONCE = 4 << 20
_FEW = 4


class Victim(NamedTuple):
    """A segment to be rewritten: how many of its blobs are needed, and the bytes of their records."""

    volume: Volume
    needed: int
    size: int


def rewrite(catalog: Catalog, settings: PackSettings, share: float) -> int:
    """Rewrites segments of which at most that share is needed; answers the bytes given back. Raises OSError.

    Segments without anything needed go first: that works on a full disk too.
    """
    before = catalog.usage.total
    victims = list(_victims(catalog, settings, share))
    _replace(catalog, [victim for victim in victims if not victim.needed], None)
    for group in _groups([victim for victim in victims if victim.needed], settings):
        made = _copied(catalog, group)
        if made is not None:
            _replace(catalog, group, made)
    return before - catalog.usage.total


def _victims(catalog: Catalog, settings: PackSettings, share: float) -> Iterator[Victim]:
    small: list[Victim] = []
    for volume in catalog.sealed():
        victim = _victim(catalog, volume)
        if victim is None:
            continue
        if not victim.needed or (volume.kept < volume.count and victim.size <= share * volume.size):
            yield victim
        elif volume.size < settings.segment // _FEW and volume.count < settings.records // _FEW:
            small.append(victim)
    if len(small) >= _FEW:
        yield from small


def _victim(catalog: Catalog, volume: Volume) -> Victim | None:
    own = mending.own_index(catalog, volume)
    if own is None:
        return None
    needed = size = 0
    for entry in _needed(volume, own):
        needed += 1
        size += record.size(len(volume.owners[entry.owner].encode()), entry.stored)
    return Victim(volume, needed, size)


def _needed(volume: Volume, own: Index) -> Iterator[Entry]:
    return (entry for entry in own.entries() if not volume.is_dead(entry.slot))


def _groups(victims: list[Victim], settings: PackSettings) -> Iterator[list[Victim]]:
    """Victims whose remains fit one segment."""
    group: list[Victim] = []
    size = records = 0
    for victim in victims:
        if group and (size + victim.size > settings.segment or records + victim.needed > settings.records):
            yield group
            group, size, records = [], 0, 0
        group.append(victim)
        size, records = size + victim.size, records + victim.needed
    if group:
        yield group


def _copied(catalog: Catalog, group: list[Victim]) -> Volume | None:
    """The new segment, durable with its index; None when an old one can't be read and is left alone."""
    number = catalog.number()
    path = segment.path(catalog.folder, number)
    temp = path.with_name(path.name + disk.TEMP)
    begun, seed = segment.head(number)
    volume = Volume(catalog.folder, number, len(begun))
    handle = disk.create(temp)
    try:
        write_all(handle, begun)
        entries = _copy(catalog, group, volume, handle, seed)
        disk.sync(handle)
        faults.point("packs.rewrite.written")
        replaces = [victim.volume.number for victim in group]
        sealing.write_index(volume, seed, volume.size, entries, sealed=True, replaces=replaces)
        faults.point("packs.rewrite.indexed")
        os.rename(temp, path)
    except _UnreadableError as error:
        _LOG.warning(
            "segment %d of the kept bytes could not be rewritten: it can't be read whole", error.number
        )
        temp.unlink()
        return None
    except BaseException:
        temp.unlink(missing_ok=True)
        volume.index_path.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)
    disk.sync_folder(catalog.folder)
    volume.count = len(entries)
    faults.point("packs.rewrite.named")
    return volume


class _UnreadableError(Exception):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _copy(catalog: Catalog, group: list[Victim], volume: Volume, handle: int, seed: int) -> list[bytes]:
    owners: dict[str, int] = {}
    entries: dict[bytes, bytes] = {}
    buffer: list[bytes] = []
    buffered = 0
    for victim in reversed(group):  # of two copies the newer one
        for entry in _in_order(victim.volume):
            if entry.digest in entries:
                continue
            owner = victim.volume.owners[entry.owner]
            data = record.encode(_head(entry, owner), _payload(catalog, entry, owner), seed)
            broken = BROKEN if (entry.segment, entry.offset) in catalog.broken else 0
            entries[entry.digest] = entry._replace(
                segment=volume.number,
                offset=volume.size,
                owner=owners.setdefault(owner, len(owners)),
                flags=entry.flags | broken,
            ).pack()
            volume.size += len(data)
            buffer.append(data)
            buffered += len(data)
            if buffered > _AT_ONCE:
                write_all(handle, b"".join(buffer))
                buffer, buffered = [], 0
    write_all(handle, b"".join(buffer))
    volume.owners = list(owners)
    return list(entries.values())


def _in_order(volume: Volume) -> list[Entry]:
    """What is needed of a segment, as it lies there."""
    own = Index.open(volume.index_path)
    if own is None:
        raise _UnreadableError(volume.number)
    return sorted(_needed(volume, own), key=lambda entry: entry.offset)


def _head(entry: Entry, owner: str) -> Head:
    flags = entry.flags & ~BROKEN
    return Head(flags, owner.encode(), entry.at, entry.length, entry.stored, entry.digest)


def _payload(catalog: Catalog, entry: Entry, owner: str) -> bytes:
    """The bytes as they lie there, damaged ones too: their name will not fit them any better."""
    try:
        handle = catalog.handle(entry.segment)
        at = entry.offset + record.payload_at(len(owner.encode()))
        data = os.pread(handle.number, entry.stored, at) if handle is not None else b""
    except OSError:
        raise _UnreadableError(entry.segment) from None
    if len(data) != entry.stored:
        raise _UnreadableError(entry.segment)
    return data


def _replace(catalog: Catalog, group: list[Victim], made: Volume | None) -> None:
    volumes = [victim.volume for victim in group]
    with catalog.lock:
        if made is not None:
            one = sealing.opened(made)
            catalog.volumes[made.number] = made
            catalog.add_indexes([one])
            catalog.usage.resize(made.size)
        useless = catalog.remove(volumes)
    catalog.usage.resize(-sum(volume.size for volume in volumes))
    mending.discard(useless)
    opening.unlink(catalog, [volume.number for volume in volumes])
