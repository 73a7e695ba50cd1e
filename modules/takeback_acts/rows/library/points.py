"""Points: where in a conversation acts belong, as text that tells 7 from "7"; and which come after which."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias
from uuid import UUID

from takeback.errors import UsageError

Name: TypeAlias = "int | str | UUID"
"""What an app calls a conversation, or a message of it."""

_INT = re.compile(r"-?(0|[1-9][0-9]*)", re.ASCII)
_LONGEST = 500


def told(name: Name | None, what: str) -> str:
    """The text of a group or a point. Raises UsageError `journal.name`."""
    if isinstance(name, UUID):
        return str(name)
    if isinstance(name, int) and not isinstance(name, bool):
        return str(name)
    if not isinstance(name, str) or not _plain(name):
        raise UsageError(
            "journal.name",
            f"The {what} is no int, no UUID and no text of at most {_LONGEST} characters.",
            "Give the id that your app has for it.",
        )
    return f"={name}" if not name or name.startswith("=") or _INT.fullmatch(name) else name


def _plain(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return len(text) <= _LONGEST and "\0" not in text


def vanishing(first: Mapping[str, int], point: Name | None, points: Sequence[Name] | None) -> frozenset[str]:
    """The points from one on, of those that acted; `first` has the number of each one's first act.

    A number has after it all that are greater. Of other names those are after it that acted first after it,
    or the caller says which. Raises UsageError `journal.points` where neither tells.
    """
    target = told(point, "point")
    if points is not None:
        return frozenset({target, *(told(each, "point") for each in points)})
    if isinstance(point, int):
        numbered = {name for name in first if _INT.fullmatch(name) and int(name) >= point}
        others = {name for name in first if not _INT.fullmatch(name)}
        return frozenset(numbered | (_since(first, numbered) & others))
    if target in first:
        return frozenset(_since(first, {target}))
    if first:
        raise UsageError(
            "journal.points",
            "Nothing was journaled at that point, so nobody knows what came after it.",
            "Give points=[...]: it, and all that come after it.",
        )
    return frozenset()


def _since(first: Mapping[str, int], points: Iterable[str]) -> set[str]:
    start = min((first[name] for name in points), default=None)
    return set() if start is None else {name for name, number in first.items() if number >= start}
