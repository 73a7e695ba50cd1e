"""Placed: things by their paths, and which of them lie beneath one."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Generic, TypeVar

T = TypeVar("T")


class Placed(Generic[T]):
    """A dictionary by path that finds what lies beneath a path without going through all."""

    def __init__(self) -> None:
        self._things: dict[bytes, T] = {}
        self._sorted: list[bytes] = []

    def __contains__(self, path: bytes) -> bool:
        return path in self._things

    def __getitem__(self, path: bytes) -> T:
        return self._things[path]

    def __setitem__(self, path: bytes, thing: T) -> None:
        if path not in self._things:
            insort(self._sorted, path)
        self._things[path] = thing

    def within(self, path: bytes) -> dict[bytes, T]:
        """What lies beneath a path, itself aside."""
        start, end = self._range(path)
        return {key: self._things[key] for key in self._sorted[start:end]}

    def any_within(self, path: bytes) -> bool:
        """Whether anything lies beneath a path, itself aside."""
        start, end = self._range(path)
        return start < end

    def drop(self, path: bytes) -> None:
        """Forgets a path and all beneath it."""
        start, end = self._range(path)
        for key in self._sorted[start:end]:
            del self._things[key]
        del self._sorted[start:end]
        if self._things.pop(path, None) is not None:
            del self._sorted[bisect_left(self._sorted, path)]

    def _range(self, path: bytes) -> tuple[int, int]:
        """From where to where the paths beneath one, itself aside, stand among the sorted ones."""
        top = path.rstrip(b"/")
        # What begins with `/a/` sorts between that and `/a0`, the byte after the slash.
        return bisect_right(self._sorted, top + b"/"), bisect_left(self._sorted, top + b"0")
