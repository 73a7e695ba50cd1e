"""Merge: three versions of a text into one, line by line and byte by byte, or not at all."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

MOST_BYTES = 1 << 20
MOST_LINES = 20_000
_MOST_PAIRS = 1 << 14


class Change(NamedTuple):
    """Lines start to end of the base became these."""

    start: int
    end: int
    lines: list[bytes]


def is_text(data: bytes, most_bytes: int = MOST_BYTES) -> bool:
    """Whether bytes are taken for text that can be merged: no NUL, and not too many."""
    return len(data) <= most_bytes and b"\0" not in data


def merge(
    base: bytes, ours: bytes, theirs: bytes, *, most_bytes: int = MOST_BYTES, most_lines: int = MOST_LINES
) -> bytes | None:
    """The base with the changes of both sides, or None when they overlap, touch, or are not text.

    Lines are bytes with their own endings, so line endings, a byte order mark and a missing last newline stay
    as they are. The same change on both sides is made once.
    """
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    if not all(is_text(side, most_bytes) for side in (base, ours, theirs)):
        return None
    lines = [side.splitlines(keepends=True) for side in (base, ours, theirs)]
    if any(len(side) > most_lines for side in lines):
        return None
    both = _both(list(changes(lines[0], lines[1])), list(changes(lines[0], lines[2])))
    return None if both is None else _applied(lines[0], both)


def changes(base: list[bytes], side: list[bytes]) -> Iterator[Change]:
    """What changed from the base, in order.

    Lines that occur once on either side anchor the rest, since matching everything with everything would take
    minutes on a file of equal lines; what has no anchor and is small is matched plainly.
    """
    gaps = [(0, len(base), 0, len(side))]
    while gaps:
        a, b, c, d = _trimmed(base, side, *gaps.pop())
        if a == b or c == d:
            if (a, c) != (b, d):
                yield Change(a, b, side[c:d])
        elif anchors := _anchors(base, side, a, b, c, d):
            starts = [(a, c), *((i + 1, j + 1) for i, j in anchors)]
            ends = [*anchors, (b, d)]
            gaps += [(i, k, j, m) for (i, j), (k, m) in zip(starts, ends, strict=True)][::-1]
        else:
            yield from _matched(base, side, a, b, c, d)


def _trimmed(
    base: list[bytes], side: list[bytes], a: int, b: int, c: int, d: int
) -> tuple[int, int, int, int]:
    while a < b and c < d and base[a] == side[c]:
        a, c = a + 1, c + 1
    while a < b and c < d and base[b - 1] == side[d - 1]:
        b, d = b - 1, d - 1
    return a, b, c, d


def _anchors(base: list[bytes], side: list[bytes], a: int, b: int, c: int, d: int) -> list[tuple[int, int]]:
    """The longest rising run of pairs of equal lines that occur once on either side."""
    here, there = _once(base, a, b), _once(side, c, d)
    tops: list[int] = []  # the lowest last place of a run of each length
    runs: list[tuple[int, int, int]] = []  # base, side, and the run's member before
    lasts: list[int] = []
    for line, i in here.items():
        j = there.get(line)
        if j is None:
            continue
        at = bisect_left(tops, j)
        runs.append((i, j, lasts[at - 1] if at else -1))
        tops[at : at + 1] = [j]
        lasts[at : at + 1] = [len(runs) - 1]
    found, member = [], lasts[-1] if lasts else -1
    while member >= 0:
        i, j, member = runs[member]
        found.append((i, j))
    return found[::-1]


def _once(lines: list[bytes], start: int, end: int) -> dict[bytes, int]:
    counts = Counter(lines[start:end])
    return {lines[i]: i for i in range(start, end) if counts[lines[i]] == 1}


def _matched(base: list[bytes], side: list[bytes], a: int, b: int, c: int, d: int) -> Iterator[Change]:
    if (b - a) * (d - c) > _MOST_PAIRS:
        yield Change(a, b, side[c:d])
        return
    for tag, i, k, j, m in SequenceMatcher(None, base[a:b], side[c:d], autojunk=False).get_opcodes():
        if tag != "equal":
            yield Change(a + i, a + k, side[c + j : c + m])


def _both(ours: list[Change], theirs: list[Change]) -> list[Change] | None:
    """The edits of both sides in their order; None where two different ones overlap or touch."""
    edits = sorted(ours + theirs, key=lambda edit: (edit.start, edit.end))
    kept: list[Change] = []
    for edit in edits:
        if kept and edit == kept[-1]:
            continue
        if kept and edit.start <= kept[-1].end:
            return None
        kept.append(edit)
    return kept


def _applied(base: list[bytes], edits: list[Change]) -> bytes:
    parts: list[bytes] = []
    done = 0
    for edit in edits:
        parts += base[done : edit.start] + edit.lines
        done = edit.end
    return b"".join(parts + base[done:])
