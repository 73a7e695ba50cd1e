"""Overlay: what paths would be like after the rehearsed steps of a plan, laid over what the disk says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

from takeback.errors import TakebackError
from takeback_acts.files import trees
from takeback_acts.files.paths import beneath, join, split
from takeback_acts.files.placed import Placed
from takeback_acts.files.states import State
from takeback_acts.files.trees import NOTHING, Entry, Seen

_KEY = "files"


class Overlay:
    """Paths with what lies there in the rehearsal; `data` holds bytes that were made up in it, by digest."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self._paths = Placed[Seen]()
        # Entries whose owner or mode alone has changed since what is noted above, whatever they hold.
        self._dressed = Placed[State]()

    @classmethod
    def of(cls, rehearsal: MutableMapping[str, Any] | None) -> Overlay:
        """The overlay of a plan's rehearsal; an empty one outside of any."""
        if rehearsal is None:
            return cls()
        found: Overlay = rehearsal.setdefault(_KEY, cls())
        return found

    def put(self, path: bytes, seen: Seen) -> None:
        """Notes what would lie at a path from now on, with everything beneath it."""
        self._dressed.drop(path)
        self._paths.drop(path)
        self._paths[path] = seen

    def dress(self, path: bytes, state: State) -> None:
        """Notes an entry's owner and a folder's mode from now on; what it holds stays as it is."""
        self._dressed[path] = state

    def holds_inside(self, path: bytes) -> bool:
        """Whether the rehearsal has changed anything beneath a path."""
        return self._paths.any_within(path)

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
        if base.state.kind == "dir" and self._paths.any_within(path):
            top = len(path.rstrip(b"/")) + 1
            inner = {key[top:]: seen for key, seen in self._paths.within(path).items()}
            base = _rebuilt(base, _patched(base.entries, inner))
        return self._as_dressed(path, base)

    def _as_dressed(self, path: bytes, seen: Seen) -> Seen:
        if path in self._dressed:
            seen = seen._replace(state=_dressed(seen.state, self._dressed[path]))
        if not seen.entries or not self._dressed.any_within(path):
            return seen
        own = self._dressed.within(path)
        entries = [
            entry._replace(state=_dressed(entry.state, own.get(join(path, entry.path))))
            for entry in seen.entries
        ]
        return _rebuilt(seen, entries)

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


def _dressed(state: State, own: State | None) -> State:
    """A state with the owner and, of a folder, the mode of another."""
    if own is None or state.kind != own.kind:
        return state
    given: dict[str, int] = {"owner": own.owner, "group": own.group}
    return state.model_copy(update=given | ({"mode": own.mode} if own.kind == "dir" else {}))


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
