"""git's packs and loose objects: what they hold by their own word, and whether they are whole."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator

_MAGIC = b"\377tOc\0\0\0\2"
_START = len(_MAGIC) + 256 * 4
_CHUNK = 1 << 20


def names(index: bytes, length: int) -> Iterator[bytes] | None:
    """The objects, with names of so many bytes, in the pack of this index; None when it can't be read."""
    if index[: len(_MAGIC)] != _MAGIC or len(index) < _START:
        return None
    count = int.from_bytes(index[_START - 4 : _START], "big")
    if _START + count * (length + 8) + 2 * length > len(index):
        return None
    return (index[at : at + length] for at in range(_START, _START + count * length, length))


def length_in(stem: str) -> int:
    """How long names are in a pack, by the pack's own name: it is a hash itself."""
    return (len(stem) - len("pack-")) // 2


def is_whole(handle: int, folder: bytes, name: bytes) -> bool:
    """Whether an open file of a git repository's objects has the bytes that its name or its end vouch for."""
    if folder == b"pack":
        return _ends_with_its_hash(handle, length_in(name.decode().partition(".")[0]))
    return _is_named_after_itself(handle, bytes.fromhex((folder + name).decode()))


def _is_named_after_itself(handle: int, name: bytes) -> bool:
    hashed, inflate = _hash(len(name)), zlib.decompressobj()
    try:
        while part := os.read(handle, _CHUNK):
            data = inflate.decompress(part, _CHUNK)
            while data:
                hashed.update(data)
                data = inflate.decompress(inflate.unconsumed_tail, _CHUNK)
    except zlib.error:
        return False
    return inflate.eof and hashed.digest() == name


def _ends_with_its_hash(handle: int, length: int) -> bool:
    hashed, tail = _hash(length), b""
    while part := os.read(handle, _CHUNK):
        data = tail + part
        hashed.update(data[:-length])
        tail = data[-length:]
    return hashed.digest() == tail


def _hash(length: int) -> hashlib._Hash:
    return hashlib.sha1(usedforsecurity=False) if length == 20 else hashlib.sha256()
