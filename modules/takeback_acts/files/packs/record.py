"""Records: how one blob lies in a segment.

    head      magic, flags, length of owner, time, plain length, stored length, digest, CRC of these
    owner     the label the blob was kept for
    payload   the stored bytes
    CRC       of all before it

Every CRC starts from the segment's own seed, so that bytes which only look like a record are never taken
for one: neither a blob that holds a copy of a segment nor what an earlier file left on the disk.
"""

from __future__ import annotations

import struct
from typing import NamedTuple
from zlib import crc32

MAGIC = b"\xf5TbR"
SQUEEZED = 1
# The bytes are a file of their own; the record only tells of it.
APART = 2

_HEAD = struct.Struct("<4sBBIQI32s")
_CRC = struct.Struct("<I")
_FIXED = _HEAD.size + 2 * _CRC.size


class Head(NamedTuple):
    """What a record says of its blob. Lengths in bytes, `at` in seconds since the epoch."""

    flags: int
    owner: bytes
    at: int
    length: int
    stored: int
    digest: bytes

    @property
    def size(self) -> int:
        """Bytes of the whole record."""
        return size(len(self.owner), self.stored)


def size(owner: int, stored: int) -> int:
    """Bytes of a record with an owner and a payload of such lengths."""
    return _FIXED + owner + stored


def payload_at(owner: int) -> int:
    """Where the payload begins in a record whose owner has such a length."""
    return _HEAD.size + _CRC.size + owner


def encode(head: Head, payload: bytes, seed: int) -> bytes:
    """The record as bytes."""
    fixed = _HEAD.pack(MAGIC, head.flags, len(head.owner), head.at, head.length, head.stored, head.digest)
    first = crc32(fixed, seed)
    last = crc32(payload, crc32(head.owner, first))
    return b"".join((fixed, _CRC.pack(first), head.owner, payload, _CRC.pack(last)))


def decode(data: bytes, seed: int) -> tuple[Head, bool] | None:
    """The head at the beginning of these bytes, and whether the whole record is sound; None is no record.

    A sound head whose record goes on beyond the bytes is not sound as a whole.
    """
    head = decode_head(data, seed)
    if head is None:
        return None
    end = head.size
    if end > len(data):
        return head, False
    (first,) = _CRC.unpack_from(data, _HEAD.size)
    (last,) = _CRC.unpack_from(data, end - _CRC.size)
    return head, crc32(memoryview(data)[payload_at(0) : end - _CRC.size], first) == last


def decode_head(data: bytes, seed: int) -> Head | None:
    """The head alone; its lengths are only believed when its own CRC holds."""
    if len(data) < _HEAD.size + _CRC.size or data[:4] != MAGIC:
        return None
    if _CRC.unpack_from(data, _HEAD.size)[0] != crc32(data[: _HEAD.size], seed):
        return None
    _, flags, named, at, length, stored, digest = _HEAD.unpack_from(data)
    owner = data[payload_at(0) : payload_at(named)]
    return Head(flags, owner, at, length, stored, digest) if len(owner) == named else None
