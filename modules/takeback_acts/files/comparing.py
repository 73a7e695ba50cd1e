"""Comparing: two versions of a text as the changes between them, in the unified form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from takeback_acts.files.merge import Change, changes, is_text
from takeback_acts.files.states import ABSENT_VERSION

_AROUND = 3


class Side(NamedTuple):
    """One version: its bytes, None where it is no file."""

    data: bytes | None
    version: str


def compared(old: Side, new: Side, name: str, most: int) -> tuple[str | None, str]:
    """The changes from one version to another, and a note where there's more, or else, to say."""
    for side in (old, new):
        if side.data is None and side.version != ABSENT_VERSION:
            return None, "one of the two is no file"
    before, after = old.data or b"", new.data or b""
    if before == after:
        note = "" if old.version == new.version else "the bytes are the same; mode or kind differ"
        return "", note
    if not (is_text(before, most) and is_text(after, most)):
        return None, f"not text; {len(before)} bytes became {len(after)}"
    return "".join(_unified(before, after, old, new, name)), ""


def _unified(before: bytes, after: bytes, old: Side, new: Side, name: str) -> Iterator[str]:
    yield f"--- {'/dev/null' if old.data is None else name}\n"
    yield f"+++ {'/dev/null' if new.data is None else name}\n"
    lines = before.splitlines(keepends=True)
    shift = 0
    for hunk in _hunks(list(changes(lines, after.splitlines(keepends=True)))):
        start = max(0, hunk[0].start - _AROUND)
        end = min(len(lines), hunk[-1].end + _AROUND)
        grown = sum(len(one.lines) - (one.end - one.start) for one in hunk)
        yield f"@@ -{_range(start, end - start)} +{_range(start + shift, end - start + grown)} @@\n"
        yield from _body(lines, hunk, start, end)
        shift += grown


def _hunks(found: list[Change]) -> Iterator[list[Change]]:
    """Changes that are so near that what is shown around them would overlap."""
    hunk: list[Change] = []
    for one in found:
        if hunk and one.start - hunk[-1].end > 2 * _AROUND:
            yield hunk
            hunk = []
        hunk.append(one)
    if hunk:
        yield hunk


def _body(lines: list[bytes], hunk: list[Change], start: int, end: int) -> Iterator[str]:
    at = start
    for one in hunk:
        yield from _marked(" ", lines[at : one.start])
        yield from _marked("-", lines[one.start : one.end])
        yield from _marked("+", one.lines)
        at = one.end
    yield from _marked(" ", lines[at:end])


def _marked(mark: str, lines: list[bytes]) -> Iterator[str]:
    for line in lines:
        # What is no UTF-8 is shown by its codes: this is for reading, not for patching.
        text = line.decode(errors="backslashreplace")
        yield (
            mark + text if line.endswith((b"\n", b"\r")) else f"{mark}{text}\n\\ No newline at end of file\n"
        )


def _range(start: int, count: int) -> str:
    return f"{start + 1 if count else start},{count}"
