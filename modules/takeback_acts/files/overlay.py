"""Overlay: what paths would be like after the rehearsed steps of a plan, laid over what the disk says."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

from takeback.errors import TakebackError
from takeback_acts.files import trees
from takeback_acts.files.paths import beneath, split
from takeback_acts.files.trees import NOTHING, Entry, Seen

_KEY = "files"


class Overlay:
    """Paths with what lies there in the rehearsal; `data` holds bytes that were made up in it, by digest."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self._paths: dict[bytes, Seen] = {}
        self._sorted: list[bytes] = []

    @classmethod
    def of(cls, rehearsal: MutableMapping[str, Any] | None) -> Overlay:
        """The overlay of a plan's rehearsal; an empty one outside of any."""
        if rehearsal is None:
            return cls()
        found: Overlay = rehearsal.setdefault(_KEY, cls())
        return found

    def put(self, path: bytes, seen: Seen) -> None:
        """Notes what would lie at a path from now on, with everything beneath it."""
        start, end = self._within(path)
        for key in self._sorted[start:end]:
            del self._paths[key]
        del self._sorted[start:end]
        if path not in self._paths:
            insort(self._sorted, path)
        self._paths[path] = seen

    def holds_inside(self, path: bytes) -> bool:
        """Whether the rehearsal has changed anything beneath a path."""
        start, end = self._within(path)
        return start < end

    def covers(self, path: bytes) -> bool:
        """Whether the rehearsal says what lies at a path, whatever the disk does."""
        return self._nearest(path) is not None

    def hides(self, path: bytes, error: TakebackError) -> bool:
        """Whether a path that could not be reached for this reason counts as nothing on disk.

        A link on the way does not matter where the rehearsal has put something else in its place.
        """
        if error.code in ("files.absent", "files.not_folder"):
            return True
        return error.code == "files.link" and self._nearest(path) is not None

    def over(self, path: bytes, disk: Seen) -> Seen:
        """What would lie at a path of which the disk says this."""
        base = self._own(path, disk)
        start, end = self._within(path)
        if base.state.kind != "dir" or start == end:
            return base
        top = len(path.rstrip(b"/")) + 1
        inner = {key[top:]: self._paths[key] for key in self._sorted[start:end]}
        return _rebuilt(base, _patched(base.entries, inner))

    def _own(self, path: bytes, disk: Seen) -> Seen:
        nearest = self._nearest(path)
        if nearest is None:
            return disk
        if nearest == path:
            return self._paths[path]
        return _part(self._paths[nearest], path[len(nearest.rstrip(b"/")) + 1 :])

    def _nearest(self, path: bytes) -> bytes | None:
        """The path itself or the nearest folder around it that the rehearsal has changed."""
        while path not in self._paths:
            if path == b"/":
                return None
            path = split(path)[0]
        return path

    def _within(self, path: bytes) -> tuple[int, int]:
        """From where to where the paths beneath one, itself aside, stand among the sorted ones."""
        top = path.rstrip(b"/")
        # What begins with `/a/` sorts between that and `/a0`, the byte after the slash.
        return bisect_right(self._sorted, top + b"/"), bisect_left(self._sorted, top + b"0")


def _part(seen: Seen, inner: bytes) -> Seen:
    """What a folder holds at a path from there."""
    states = {entry.path: entry.state for entry in seen.entries}
    if inner not in states:
        return NOTHING
    below = inner + b"/"
    entries = [Entry(e.path[len(below) :], e.state) for e in seen.entries if e.path.startswith(below)]
    found = Seen(states[inner], tuple(entries))
    return _rebuilt(found, entries) if found.state.kind == "dir" else found


def _patched(entries: Iterable[Entry], inner: Mapping[bytes, Seen]) -> list[Entry]:
    """Entries with what was noted at inner paths laid over them, the outer ones first."""
    kept = list(entries)
    for path in sorted(inner, key=len):
        seen = inner[path]
        kept = [entry for entry in kept if not beneath(b"/" + entry.path, b"/" + path)]
        if seen.state.kind != "absent":
            kept.append(Entry(path, seen.state.model_copy(update={"manifest": "", "content": ""})))
            kept += [Entry(path + b"/" + entry.path, entry.state) for entry in seen.entries]
    return sorted(kept, key=lambda entry: entry.path.replace(b"/", b"\0"))


def _rebuilt(seen: Seen, entries: Iterable[Entry]) -> Seen:
    listed = tuple(entries)
    content = trees.version(listed)
    return Seen(seen.state.model_copy(update={"manifest": "", "content": content}), listed)
