"""Indexes: where each blob lies, as a sorted file that is mapped rather than read.

A segment has one of its own, which can be made again from the segment. Indexes of many segments are merged
into runs, so that a look-up asks few files however many segments there are.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from math import isqrt
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from takeback_acts.files.packs import disk

SUFFIX = ".idx"
# In an entry's flags, beside a record's own: the record is there, but its bytes are not those of its name.
BROKEN = 4

_ENTRY = struct.Struct("<32sIIIIQIHH")
_SIZE = _ENTRY.size
_FOOT = struct.Struct("<II8s")
_MAGIC = b"TBIDX01\n"
_MOST_ABOUT = 16 << 20
_CHUNK = 1 << 20
_FEW = 100


class Entry(NamedTuple):
    """One blob's place: `slot` is its position in its segment's own index, `owner` a number there."""

    digest: bytes
    segment: int
    slot: int
    offset: int
    stored: int
    length: int
    at: int
    owner: int
    flags: int

    def pack(self) -> bytes:
        """The entry as it lies in an index."""
        return _ENTRY.pack(*self)

    @classmethod
    def unpack(cls, data: bytes) -> Entry:
        """The entry that `pack` packed."""
        return cls(*_ENTRY.unpack(data))


@dataclass
class About:
    """What an index says of its segments: what it covers, and for one segment also how far and whose.

    `owners` are labels; `upto` is where what it lists ends; `sealed` says that nothing will be appended.
    `usage` is bytes by owner, `apart` those of them that are files of their own. `replaces` are segments
    whose every needed blob is in this one. `crc` is that of the entries.
    """

    segments: list[int]
    seed: int = 0
    upto: int = 0
    sealed: bool = False
    owners: list[str] = field(default_factory=list)
    usage: list[int] = field(default_factory=list)
    apart: int = 0
    replaces: list[int] = field(default_factory=list)
    count: int = 0
    crc: int = 0


def write(path: Path, about: About, portions: Iterable[bytes]) -> None:
    """Writes an index durably; `portions` are packed entries, in order of digest, and are not held."""
    disk.put(path, _parts(about, portions))


def _parts(about: About, portions: Iterable[bytes]) -> Iterator[bytes]:
    about.count = about.crc = 0
    for portion in portions:
        about.count += len(portion) // _SIZE
        about.crc = crc32(portion, about.crc)
        yield portion
    said = json.dumps(asdict(about), separators=(",", ":")).encode()
    yield said + _FOOT.pack(len(said), crc32(said), _MAGIC)


class Index(Sequence[bytes]):
    """A mapped index; as a sequence, its digests."""

    def __init__(self, path: Path, about: About, data: mmap.mmap) -> None:
        self.path = path
        self.about = about
        self._data = data
        self._count = about.count
        self._spread = isqrt(about.count) + 1
        self._reach = isqrt(self._spread) + 4
        self._sound: bool | None = None

    @classmethod
    def open(cls, path: Path) -> Index | None:
        """The index in a file, or None when there is none that can be believed; its entries are not read."""
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        try:
            size = os.fstat(handle).st_size
            about = _about(handle, size)
            if about is None:
                return None
            return cls(path, about, mmap.mmap(handle, size, access=mmap.ACCESS_READ))
        finally:
            os.close(handle)

    @classmethod
    def about_of(cls, path: Path) -> About | None:
        """What an index says of itself; no file stays open for it."""
        found = cls.open(path)
        return None if found is None else found.about

    def find(self, digest: bytes) -> Entry | None:
        """The place of a blob."""
        slot = self._near(digest)
        if slot is None:
            slot = self._lower(digest)
        if slot < self._count and self[slot] == digest:
            return self.entry(slot)
        return None

    def entry(self, slot: int) -> Entry:
        """The entry at a position."""
        return Entry._make(_ENTRY.unpack_from(self._data, slot * _SIZE))

    def entries(self) -> Iterator[Entry]:
        """Every entry, in order of digest."""
        return (self.entry(slot) for slot in range(self._count))

    def between(self, low: bytes, high: bytes | None) -> list[bytes]:
        """The packed entries from one digest up to another, or to the end."""
        first = self._lower(low)
        last = self._count if high is None else self._lower(high)
        data = self._data[first * _SIZE : last * _SIZE]
        return [data[at : at + _SIZE] for at in range(0, len(data), _SIZE)]

    def sound(self) -> bool:
        """Whether the entries are as they were written; reads them all, once."""
        if self._sound is None:
            crc, end = 0, self._count * _SIZE
            for at in range(0, end, _CHUNK):
                crc = crc32(self._data[at : min(at + _CHUNK, end)], crc)
            self._sound = crc == self.about.crc
        return self._sound

    @property
    def suspect(self) -> bool:
        """Whether `sound` has found it damaged."""
        return self._sound is False

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, slot: Any) -> Any:
        at = slot * _SIZE
        return self._data[at : at + 32]

    def _near(self, digest: bytes) -> int | None:
        """Where a digest is, or the end; None if a guess and one more from what lies there were off."""
        data, count = self._data, self._count
        if count < _FEW:
            return None
        value = int.from_bytes(digest[:8], "big")
        guess = value * count >> 64
        met = int.from_bytes(data[guess * _SIZE : guess * _SIZE + 8], "big")
        guess = min(max(guess + ((value - met) * count >> 64), self._reach), count - self._reach)
        low, high = (guess - self._reach) * _SIZE, (guess + self._reach) * _SIZE
        at = data.find(digest, low, high)
        if at >= 0:
            return at // _SIZE if at % _SIZE == 0 else None
        between = data[low : low + 32] < digest < data[high - _SIZE : high - _SIZE + 32]
        return count if between else None

    def _lower(self, digest: bytes) -> int:
        """The first position not before a digest. They are spread evenly, so a guess is near."""
        guess = int.from_bytes(digest[:8], "big") * self._count >> 64
        low, high = max(0, guess - self._spread), min(self._count, guess + self._spread)
        if low and self[low - 1] >= digest:
            low = 0
        if high < self._count and self[high] < digest:
            high = self._count
        return bisect_left(self, digest, low, high)


def _about(handle: int, size: int) -> About | None:
    if size < _FOOT.size:
        return None
    length, crc, magic = _FOOT.unpack(os.pread(handle, _FOOT.size, size - _FOOT.size))
    if magic != _MAGIC or length > min(size - _FOOT.size, _MOST_ABOUT):
        return None
    said = os.pread(handle, length, size - _FOOT.size - length)
    if crc32(said) != crc:
        return None
    about = About(**json.loads(said))
    return about if size == about.count * _SIZE + length + _FOOT.size else None
