"""What a command did that is not, or not surely, in its act: by name, as far as a person reads it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from takeback_doors.cli.paths import in_words, near
from takeback_doors.cli.plain import visible

_MARK = "not captured: "
_BESIDE = "coincident: "
_MORE = re.compile(r"(\d+) more")
_SHOWN = 3


def not_captured(notes: Sequence[str]) -> list[str]:
    """What an act's notes say could not be captured: the first few with the reason, then how many more."""
    found, more = _lost(notes)
    words = [in_words(f" {note}", (), 0).strip() for note in found[:_SHOWN]]
    return words + ([f"{more} more"] if (more := more + len(found) - len(words)) else [])


def names_not_captured(notes: Sequence[str]) -> str:
    """The same in one line without the reasons; empty when all was captured."""
    found, more = _lost(notes)
    return listed([note.rpartition(" (")[0] or note for note in found], more)


def coincident(notes: Sequence[str]) -> str:
    """What changed meanwhile and may be the act's doing or not, in one line; empty when nothing did."""
    return listed([note.removeprefix(_BESIDE) for note in notes if note.startswith(_BESIDE + "/")])


def listed(paths: Sequence[str], more: int = 0) -> str:
    """The first few paths, from the current folder or the home on, and how many there are besides."""
    names = [visible(near(path)) for path in paths[:_SHOWN]]
    more += len(paths) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _lost(notes: Sequence[str]) -> tuple[list[str], int]:
    """What could not be captured, and how many there are that the notes only count."""
    found = [note.removeprefix(_MARK) for note in notes if note.startswith(_MARK)]
    counted = [_MORE.fullmatch(note) for note in found]
    names = [note for note, count in zip(found, counted, strict=True) if count is None]
    return names, sum(int(count[1]) for count in counted if count)
