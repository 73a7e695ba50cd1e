"""Grouping: from paths that changed to the items that take it back, a folder that came or went as one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from takeback_acts.files import trees
from takeback_acts.files.attributes import may_give
from takeback_acts.files.blobs import Intake
from takeback_acts.files.capture.changes import REPACKED, Held
from takeback_acts.files.origins import Origins
from takeback_acts.files.paths import beneath, by_itself, content, own, resource, shown, split
from takeback_acts.files.rooted import Found
from takeback_acts.files.states import State
from takeback_acts.files.trees import Entry

# Moved back, it would be wrong, and what was pushed would pass for what was not.
_REMOTES = re.compile(rb"/\.git/(?:modules/.+/)?refs/remotes(?:/|\Z)")
_LONGEST = 4096
# What lies there is another disk's, or takeback's.
_ELSEWHERE = ("mount", "home")


class Back(NamedTuple):
    """A path to put back: from `after` to `before`; with `own` the entry by itself, whatever it holds."""

    path: bytes
    before: State
    after: State
    own: bool = False

    @property
    def is_tree(self) -> bool:
        """Whether a folder comes or goes, or did, with all that it holds."""
        return not self.own and "dir" in (self.before.kind, self.after.kind)

    @property
    def touched(self) -> Iterator[tuple[str, str, str]]:
        """The resources with their versions before and after: the entry, and of a folder the content."""
        if self.own:
            yield own(self.path), self.before.own_version, self.after.own_version
            return
        yield resource(self.path), self.before.version, self.after.version
        if self.is_tree:
            yield content(self.path), self.before.content_version, self.after.content_version

    def dump(self) -> dict[str, Any]:
        """An item of the input of `files.restore`."""
        return {
            "resource": own(self.path) if self.own else resource(self.path),
            "before": self.before.dump(),
            "after": self.after.dump(),
        }


@dataclass(slots=True)
class Grouped:
    """What can be put back, and the reason for each path that can't."""

    items: list[Back] = field(default_factory=list)
    lost: list[tuple[bytes, str]] = field(default_factory=list)

    @property
    def digests(self) -> set[str]:
        """The blobs that the items name by themselves; what folders hold is named by their manifests."""
        states = [state for item in self.items for state in (item.before, item.after)]
        return {name for state in states for name in (state.sha256, state.manifest) if name}

    @property
    def manifests(self) -> set[str]:
        """The blobs among them that list what a folder held."""
        return {state.manifest for item in self.items for state in (item.before, item.after)} - {""}


def group(
    found: Mapping[bytes, Found],
    others: Collection[bytes],
    intake: Intake,
    origins: Origins,
    twins: Mapping[bytes, str] | None = None,
) -> Grouped:
    """Groups what was found; `others` are paths that changed too, but not by this command. Blocks.

    `twins` are the resources of other names that files had before.
    """
    return _Grouping(found, others, intake, origins, twins or {}).run()


class _Grouping:
    def __init__(
        self,
        found: Mapping[bytes, Found],
        others: Collection[bytes],
        intake: Intake,
        origins: Origins,
        twins: Mapping[bytes, str],
    ) -> None:
        self._found = found
        self._twins = twins
        self._origins = origins
        # A folder comes right before all that lies in it, as a walk by name has it.
        self._order = sorted({*found, *others}, key=lambda path: path.replace(b"/", b"\0"))
        self._ends = [len(self._order)] * len(self._order)
        self._partly: set[int] = set()
        self._intake = intake
        self._made = Grouped()

    def run(self) -> Grouped:
        self._sort_out()
        at = 0
        while at < len(self._order):
            at = self._take(at)
        return self._made

    def _take(self, at: int) -> int:
        """Takes the path at a place, and what it holds when that goes with it; answers the next place."""
        path = self._order[at]
        one = self._found.get(path)
        if one is None or one.stays:
            return at + 1
        if one.only_own:
            self._take_own(path, one)
            return at + 1
        was, now = one.before.kind == "dir", one.after.kind == "dir"
        end = self._ends[at] if was or now else at + 1
        if _REMOTES.search(path) and not was and any(map(self._tells_of_remote, self._order[at:end])):
            if not now:
                self._lose(path, "it stays, for it tells what a remote has")
            return at + 1
        if doubt := self._origins.doubt(path, one):
            self._lose(path, doubt)
            return end
        inner = self._order[at + 1 : end]
        if now and at in self._partly:
            self._lose(path, "the folder stays, for it holds what is not put back")
            return at + 1
        before, after = self._state(path, one.before, inner, old=True), self._state(path, one.after, inner)
        if before is None or after is None:
            self._lose(path, one.before.reason or one.after.reason or "it is a pipe, a socket or a device")
        elif len(path) > _LONGEST:
            self._lose(path, "its path is too long")
        else:
            self._made.items.append(Back(path, before, after))
        return end

    def _take_own(self, path: bytes, one: Found) -> None:
        """Takes the owner of an entry, or the mode of a folder, whatever lies in it."""
        before, after = one.before.own(), one.after.own()
        if before is None or after is None:
            self._lose(path, "it is a pipe, a socket or a device")
        elif one.before.reason in _ELSEWHERE:
            self._lose(path, one.before.reason)
        elif not may_give(after, before):
            self._lose(path, "only root can give it back to its owner")
        elif len(by_itself(path)) > _LONGEST:
            self._lose(path, "its path is too long")
        else:
            self._made.items.append(Back(path, before, after, own=True))

    def _tells_of_remote(self, path: bytes) -> bool:
        """Whether a file says where a branch of a remote is; its HEAD only names one of them."""
        one = self._found.get(path)
        return one is not None and one.after.kind == "file" and split(path)[1] != b"HEAD"

    def _sort_out(self) -> None:
        """Where what each folder holds ends, and which folders hold something that is not put back.

        In one pass each, for a folder may be in a folder in a folder, many thousands of times.
        """
        around, above = list[int](), list[int]()
        for at, path in enumerate(self._order):
            while around and not beneath(path, self._order[around[-1]]):
                self._ends[around.pop()] = at
            above.append(around[-1] if around else -1)
            around.append(at)
        for at in range(len(self._order) - 1, -1, -1):
            if above[at] >= 0 and (at in self._partly or not self._goes_along(self._order[at])):
                self._partly.add(above[at])

    def _goes_along(self, path: bytes) -> bool:
        """Whether a path in a new folder is put back with it."""
        one = self._found.get(path)
        return one is not None and one.after.state() is not None and not self._origins.doubt(path, one)

    def _state(self, path: bytes, held: Held, inner: list[bytes], *, old: bool = False) -> State | None:
        state = held.state() if old else held.left()
        if state is None or state.kind != "dir":
            return self._linked(path, state) if old and state is not None else state
        entries = tuple(self._entries(path, inner, old=old))
        manifest = self._intake.data(trees.dump(entries))
        return state.model_copy(update={"manifest": manifest, "content": trees.version(entries)})

    def _entries(self, top: bytes, inner: list[bytes], *, old: bool) -> Iterator[Entry]:
        lost: bytes | None = None
        for path in inner:
            one = self._found.get(path)
            if one is None or (lost is not None and beneath(path, lost)):
                continue
            held = one.before if old else one.after
            state = held.state()
            if held.reason == REPACKED:
                continue
            if state is None:
                self._lose(path, held.reason or "it is a pipe, a socket or a device")
                lost = path
            elif state.kind != "absent":
                yield Entry(path[len(top) + 1 :], self._linked(path, state) if old else state)

    def _linked(self, path: bytes, state: State) -> State:
        twin = self._twins.get(path)
        return state if twin is None else state.model_copy(update={"twin": twin})

    def _lose(self, path: bytes, reason: str) -> None:
        self._made.lost.append((path, reason))


def told(lost: list[tuple[bytes, str]], most: int) -> list[str]:
    """Words for what can't be put back, so many at most."""
    words = [f"not captured: {shown(path):.600} ({reason.replace('_', ' ')})" for path, reason in lost[:most]]
    return words + ([f"not captured: {len(lost) - most} more"] if len(lost) > most else [])
