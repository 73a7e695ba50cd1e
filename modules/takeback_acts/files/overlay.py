"""Overlay: what paths would be like after the rehearsed steps of a plan, laid over what the disk says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

from takeback.errors import TakebackError
from takeback_acts.files import trees
from takeback_acts.files.paths import beneath
from takeback_acts.files.trees import NOTHING, Entry, Seen

_KEY = "files"


class Overlay:
    """Paths with what lies there in the rehearsal; `data` holds bytes that were made up in it, by digest."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self._paths: dict[bytes, Seen] = {}

    @classmethod
    def of(cls, rehearsal: MutableMapping[str, Any] | None) -> Overlay:
        """The overlay of a plan's rehearsal; an empty one outside of any."""
        if rehearsal is None:
            return cls()
        found: Overlay = rehearsal.setdefault(_KEY, cls())
        return found

    def put(self, path: bytes, seen: Seen) -> None:
        """Notes what would lie at a path from now on, with everything beneath it."""
        self._paths = {key: old for key, old in self._paths.items() if not beneath(key, path)}
        self._paths[path] = seen

    def holds_inside(self, path: bytes) -> bool:
        """Whether the rehearsal has changed anything beneath a path."""
        return any(_inside(key, path) for key in self._paths)

    def hides(self, path: bytes, error: TakebackError) -> bool:
        """Whether a path that could not be reached for this reason counts as nothing on disk.

        A link on the way does not matter where the rehearsal has put something else in its place.
        """
        if error.code in ("files.absent", "files.not_folder"):
            return True
        return error.code == "files.link" and any(beneath(path, key) for key in self._paths)

    def over(self, path: bytes, disk: Seen) -> Seen:
        """What would lie at a path of which the disk says this."""
        base = self._own(path, disk)
        inner = {
            key[len(path.rstrip(b"/")) + 1 :]: seen for key, seen in self._paths.items() if _inside(key, path)
        }
        if base.state.kind != "dir" or not inner:
            return base
        return _rebuilt(base, _patched(base.entries, inner))

    def _own(self, path: bytes, disk: Seen) -> Seen:
        around = [key for key in self._paths if beneath(path, key)]
        if not around:
            return disk
        nearest = max(around, key=len)
        if nearest == path:
            return self._paths[path]
        return _part(self._paths[nearest], path[len(nearest.rstrip(b"/")) + 1 :])


def _inside(key: bytes, path: bytes) -> bool:
    return key != path and beneath(key, path)


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
    return sorted(kept, key=lambda entry: entry.path.split(b"/"))


def _rebuilt(seen: Seen, entries: Iterable[Entry]) -> Seen:
    listed = tuple(entries)
    content = trees.version(listed)
    return Seen(seen.state.model_copy(update={"manifest": "", "content": content}), listed)
