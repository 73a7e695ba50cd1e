"""Squeezing: Zstandard for small blobs, where it gains something."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_LEVEL = 3
_LEAST = 128


def squeeze(data: bytes) -> bytes | None:
    """Fewer bytes that hold the same, or None where there are none worth it."""
    if len(data) < _LEAST:
        return None
    packed = zstd.compress(data, _LEVEL)
    return packed if len(packed) < len(data) - len(data) // 16 else None


def restore(packed: bytes, length: int) -> bytes | None:
    """The plain bytes, never more than `length` and one; None when these are no squeezed bytes."""
    try:
        return zstd.ZstdDecompressor().decompress(packed, max_length=length + 1)
    except zstd.ZstdError:
        return None
