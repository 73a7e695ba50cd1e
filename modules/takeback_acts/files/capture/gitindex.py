"""git's index, read by us and never written: which object git tracks each path as."""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

_FIXED = 40
_EXTENDED = 0x4000
_NAME = 0x0FFF
_FILE_MODES = {0o100644, 0o100755}


class IndexFormatError(ValueError):
    """The bytes are no index that can be read."""


class Index(NamedTuple):
    """The tracked files: object name by path, and how many bytes a name has (20 or 32)."""

    files: dict[bytes, bytes]
    length: int


def parse(data: bytes) -> Index:
    """Reads an index of version 2, 3 or 4.

    Links, submodules, folders of a sparse index and paths in conflict are left out. Raises IndexFormatError.
    """
    if len(data) < 12 or data[:4] != b"DIRC":
        raise IndexFormatError("no index")
    version, count = struct.unpack_from(">II", data, 4)
    if version not in (2, 3, 4):
        raise IndexFormatError("a version that is not known")
    length = _hash_length(data)
    try:
        files, end = _entries(data, version, count, length)
    except (struct.error, IndexError, ValueError):
        raise IndexFormatError("cut off") from None
    # A split index holds but the differences to another file.
    if _has_extension(data, end, length, b"link"):
        raise IndexFormatError("split")
    return Index(files, length)


def _hash_length(data: bytes) -> int:
    if data[-20:] == hashlib.sha1(data[:-20], usedforsecurity=False).digest():
        return 20
    if data[-32:] == hashlib.sha256(data[:-32]).digest():
        return 32
    # git may be told to write no checksum; then it is zeros, as many as its hash is long.
    if data[-32:] == bytes(32):
        return 32
    if data[-20:] == bytes(20):
        return 20
    raise IndexFormatError("a wrong checksum")


def _entries(data: bytes, version: int, count: int, length: int) -> tuple[dict[bytes, bytes], int]:
    files: dict[bytes, bytes] = {}
    at, path, end_of_all = 12, b"", len(data) - length
    fixed = _FIXED + length + 2
    for _ in range(count):
        if at + fixed > end_of_all:
            raise IndexFormatError("cut off")
        mode = int.from_bytes(data[at + 24 : at + 28], "big")
        flags = int.from_bytes(data[at + fixed - 2 : at + fixed], "big")
        start = at + fixed + (2 if flags & _EXTENDED and version > 2 else 0)
        if version == 4:
            path, following = _shortened(data, start, path)
        else:
            end = data.index(b"\0", start) if flags & _NAME == _NAME else start + (flags & _NAME)
            path = data[start:end]
            following = at + ((end - at) // 8 + 1) * 8
        if mode in _FILE_MODES and not flags & 0x3000:
            files[path] = data[at + _FIXED : at + _FIXED + length]
        at = following
    return files, at


def _shortened(data: bytes, at: int, before: bytes) -> tuple[bytes, int]:
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = (value + 1) << 7 | data[at] & 0x7F
    if value > len(before):
        raise IndexFormatError("a path that is cut by more than it has")
    end = data.index(b"\0", at + 1)
    return before[: len(before) - value] + data[at + 1 : end], end + 1


def _has_extension(data: bytes, at: int, length: int, wanted: bytes) -> bool:
    while at + 8 <= len(data) - length:
        name, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "big")
        if name == wanted:
            return True
        at += 8 + size
    return False
