"""Segments: files of records, one after another. A segment begins with its head, twice over."""

from __future__ import annotations

import mmap
import os
import secrets
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from takeback import faults
from takeback_acts.files.packs import disk, record
from takeback_acts.files.packs.record import Head
from takeback_acts.files.reading import write_all

SUFFIX = ".pack"
_MAGIC = b"TBPACK1\n"
_HEAD = struct.Struct("<8sQ8sI")
START = 2 * _HEAD.size
_LONGEST_OWNER = 255


class Found(NamedTuple):
    """A record met in a scan; not `sound` when its payload is not what its CRC says."""

    offset: int
    head: Head
    sound: bool


class Scan(NamedTuple):
    """What a scan met, and where the last sound record ends; what comes after it was never acknowledged."""

    found: list[Found]
    end: int


def path(folder: Path, number: int) -> Path:
    """The file of a segment."""
    return folder / f"{number:08d}{SUFFIX}"


def head(number: int) -> tuple[bytes, int]:
    """The beginning of a new segment, and the seed of its records' CRCs."""
    salted = _HEAD.pack(_MAGIC, number, secrets.token_bytes(8), 0)[: -struct.calcsize("<I")]
    seed = crc32(salted)
    return (salted + struct.pack("<I", seed)) * 2, seed


def seed(handle: int) -> int | None:
    """The seed of an open segment, from whichever of its two heads is whole."""
    begun = os.pread(handle, START, 0)
    for at in (0, _HEAD.size):
        one = begun[at : at + _HEAD.size]
        if len(one) == _HEAD.size and one[:8] == _MAGIC:
            (said,) = struct.unpack_from("<I", one, _HEAD.size - 4)
            if crc32(one[:-4]) == said:
                return int(said)
    return None


def scan(handle: int, seed: int, start: int) -> Scan:
    """Every record from `start`, across stretches that are none."""
    if os.fstat(handle).st_size <= start:
        return Scan([], start)
    with mmap.mmap(handle, 0, access=mmap.ACCESS_READ) as data:
        found = list(_records(data, seed, start))
    sound = [one for one in found if one.sound]
    end = sound[-1].offset + sound[-1].head.size if sound else start
    return Scan([one for one in found if one.offset < end], end)


def _records(data: mmap.mmap, seed: int, at: int) -> Iterator[Found]:
    """Goes on behind a bad stretch where the next head holds: what is there may have been acknowledged."""
    while (at := data.find(record.MAGIC, at)) >= 0:
        head = record.decode_head(data[at : at + record.payload_at(_LONGEST_OWNER)], seed)
        decoded = record.decode(data[at : at + head.size], seed) if head is not None else None
        if decoded is None:
            at += 1
            continue
        head, sound = decoded
        yield Found(at, head, sound)
        # The head's CRC held, but where its record is torn the next may begin earlier than it says.
        at += head.size if sound else record.payload_at(len(head.owner))


class Segment:
    """The segment that is appended to. For one thread."""

    def __init__(self, number: int, path: Path, handle: int, seed: int, size: int) -> None:
        self.number = number
        self.path = path
        self.seed = seed
        self.size = size
        self._handle = handle

    @classmethod
    def create(cls, folder: Path, number: int) -> Segment:
        """A new segment under its name, durably."""
        begun, seed = head(number)
        where = path(folder, number)
        handle = disk.create(where)
        try:
            write_all(handle, begun)
            disk.sync(handle)
            faults.point("packs.segment.created")
            disk.sync_folder(folder)
        except BaseException:
            os.close(handle)
            where.unlink(missing_ok=True)
            raise
        faults.point("packs.segment.named")
        return cls(number, where, handle, seed, len(begun))

    @classmethod
    def resume(cls, number: int, path: Path, seed: int, end: int) -> Segment:
        """A segment to append to at `end`; what a crash left behind that is cut off durably."""
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        made = cls(number, path, handle, seed, end)
        try:
            if os.fstat(handle).st_size != end:
                made.cut(end)
        except BaseException:
            os.close(handle)
            raise
        return made

    def append(self, data: bytes) -> None:
        """Writes at the end; not durable before `sync`."""
        faults.point("packs.append")
        at, left = self.size, memoryview(data)
        while left:
            written = os.pwrite(self._handle, left, at)
            at, left = at + written, left[written:]
        self.size = at
        faults.point("packs.appended")

    def sync(self) -> None:
        """Makes all that was appended durable."""
        disk.sync(self._handle)
        faults.point("packs.synced")

    def cut(self, end: int) -> None:
        """Forgets everything behind `end`."""
        os.ftruncate(self._handle, end)
        self.size = end
        os.fsync(self._handle)
        faults.point("packs.cut")

    def close(self) -> None:
        """Closes the file."""
        os.close(self._handle)
