"""Runs: indexes of many segments in one, each made of eight smaller ones, so that there are never many."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from takeback_acts.files.packs import index
from takeback_acts.files.packs.index import About, Index

SUFFIX = ".run"
_FAN = 8
_STEPS = 256
_SEGMENT = slice(32, 36)


def due(indexes: Sequence[Index]) -> list[Index]:
    """Indexes of about one size that should be merged, or none."""
    levels: dict[int, list[Index]] = {}
    for one in indexes:
        levels.setdefault((len(one.about.segments).bit_length() - 1) // 3, []).append(one)
    return next((found for _, found in sorted(levels.items()) if len(found) >= _FAN), [])


def merge(folder: Path, number: int, parts: Sequence[Index], there: Collection[int]) -> Index | None:
    """One run of several indexes, without entries of segments that are gone; of a digest's places the newest.

    None when a part turns out to be damaged.
    """
    if not all(part.sound() for part in parts):
        return None
    covered = sorted({segment for part in parts for segment in part.about.segments} & set(there))
    path = folder / f"{number:08d}{SUFFIX}"
    index.write(path, About(covered), _merged(parts, set(covered)))
    return Index.open(path)


def _merged(parts: Sequence[Index], there: set[int]) -> Iterator[bytes]:
    """Step by step through the digests' first byte, so that little is in memory at once."""
    for step in range(_STEPS):
        low = bytes([step]) + bytes(31)
        high = bytes([step + 1]) + bytes(31) if step + 1 < _STEPS else None
        newest: dict[bytes, bytes] = {}
        for part in parts:
            for packed in part.between(low, high):
                _keep(newest, packed, there)
        yield b"".join(packed for _, packed in sorted(newest.items()))


def _keep(newest: dict[bytes, bytes], packed: bytes, there: set[int]) -> None:
    segment = int.from_bytes(packed[_SEGMENT], "little")
    if segment not in there:
        return
    other = newest.get(packed[:32])
    if other is None or int.from_bytes(other[_SEGMENT], "little") < segment:
        newest[packed[:32]] = packed
