"""Arrivals: which files of a folder have come or changed, and which of them are complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Mark(NamedTuple):
    """What tells a file that has changed from one that has not; its time is in nanoseconds."""

    inode: int
    size: int
    mtime_ns: int


@dataclass(slots=True)
class _Coming:
    mark: Mark
    since: float


class Arrivals:
    """Files by name, from one look at their folder to the next.

    A file has arrived when it is there and was not, or is not as it was. It is complete when it has been the
    same for `settle` seconds and holds something: programs put an empty file where a download will be.
    """

    def __init__(self, settle: float) -> None:
        self._settle = settle
        self._left: dict[str, Mark] = {}
        self._coming: dict[str, _Coming] = {}

    def begin(self, found: Mapping[str, Mark]) -> None:
        """These were there before anybody looked, so they have not arrived."""
        self._left = dict(found)

    def note(self, found: Mapping[str, Mark], now: float) -> None:
        """What is there at `now`, in seconds of a clock that only goes on."""
        self._left = {name: mark for name, mark in self._left.items() if found.get(name) == mark}
        before, self._coming = self._coming, {}
        for name, mark in found.items():
            if name not in self._left:
                coming = before.get(name)
                same = coming is not None and coming.mark == mark
                self._coming[name] = coming if coming is not None and same else _Coming(mark, now)

    def lost(self) -> None:
        """The folder can't be looked at now, so that nothing in it is coming."""
        self._coming.clear()

    def complete(self, now: float) -> list[tuple[str, Mark]]:
        """The files that are complete, by name."""
        found = self._coming.items()
        return sorted((name, each.mark) for name, each in found if each.mark.size and self._due(each) <= now)

    def leave(self, name: str, mark: Mark) -> None:
        """Leave a file alone until it changes."""
        self._coming.pop(name, None)
        self._left[name] = mark

    def forget(self, name: str) -> None:
        """A file was taken away; what comes by its name, if only back, has arrived anew."""
        self._coming.pop(name, None)

    def put_off(self, name: str, until: float) -> None:
        """Have a file wait until then, and settle again."""
        if name in self._coming:
            self._coming[name].since = until

    def holds(self, name: str, mark: Mark) -> bool:
        """Whether this file is still there as it was, left alone or coming."""
        coming = self._coming.get(name)
        return mark in (self._left.get(name), coming and coming.mark)

    def next_due(self) -> float | None:
        """When the next file will be complete if it does not change, or None when there is none."""
        return min((self._due(each) for each in self._coming.values() if each.mark.size), default=None)

    def _due(self, coming: _Coming) -> float:
        return coming.since + self._settle
