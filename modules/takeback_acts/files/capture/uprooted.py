"""Uprooted: how all that a root held differs from what is there now, where it was removed or moved."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from takeback_acts.files.capture import shelf
from takeback_acts.files.capture.bringing import Bringing, Place, place
from takeback_acts.files.capture.changes import (
    NOTHING,
    Change,
    Held,
    entry,
    held,
    held_folder,
    what_changed,
)
from takeback_acts.files.capture.intake import same
from takeback_acts.files.capture.node import Node
from takeback_acts.files.capture.repositories import Repositories
from takeback_acts.files.capture.row import Row
from takeback_acts.files.capture.shelf import ShelfError
from takeback_acts.files.capture.tree import Tree


@dataclass(slots=True)
class Uprooted:
    """What is known of a root that is not there any more; no tree when it was known to be away.

    `moved_to` is where the folder is now, empty when it is nowhere. `seen_to_go` says that it was open when
    it went, so that its disk can't be away.
    """

    tree: Tree | None
    repositories: Repositories
    device: int
    moved_to: bytes = b""
    seen_to_go: bool = False

    def changes(self, now: Tree | None, there: Held, bringing: Bringing) -> list[Change]:
        """How it differs from the tree that is there now, or from what is no folder at all."""
        pairs = list(_pairs(self.tree, now, there))
        brought = _brought(pairs, bringing)
        found = []
        for pair in pairs:
            before, after = _held(pair.before, brought), _held(pair.after, brought)
            found.append(Change(pair.folder, pair.name, what_changed(before, after), before, after))
        return found


class _Side(NamedTuple):
    """What lies at a path on one of the two sides, in a folder of its tree."""

    node: Node
    name: bytes
    thing: Row | Held


class _Pair(NamedTuple):
    folder: Node
    name: bytes
    before: _Side | None
    after: _Side | None


def shelved(folder: Path, repositories: Repositories, here: list[int] | None) -> Uprooted | None:
    """What an earlier process knew of a root, unless the folder of this identity still is that root."""
    try:
        found = shelf.load(folder / "baseline")
    except ShelfError:
        return None
    if found is None or found[1]["identity"] == here:
        return None
    tree, meta = found
    repositories.recall(meta)
    return Uprooted(tree, repositories, meta["identity"][0])


def where(handle: int) -> bytes | None:
    """Where an open folder is now, empty when it was removed; None when nobody can tell."""
    if os.fstat(handle).st_nlink == 0:
        return b""
    try:
        path = _named(handle)
        found, own = os.stat(path, follow_symlinks=False), os.fstat(handle)
    except OSError:
        return None
    return path if (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino) else None


def _named(handle: int) -> bytes:
    if sys.platform == "darwin":
        return fcntl.fcntl(handle, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0")
    return os.readlink(b"/proc/self/fd/%d" % handle)


def _pairs(old: Tree | None, new: Tree | None, there: Held) -> Iterator[_Pair]:
    """Every path at which the two differ; `there` is what is there when it is no folder."""
    was, now = old.top if old is not None else None, new.top if new is not None else None
    top = was or now or Node(None, b"")
    before = held_folder(was) if was is not None else NOTHING
    after = held_folder(now) if now is not None else there
    if entry(before) != entry(after):
        yield _Pair(top, b"", _side(top, b"", before), _side(top, b"", after))
    stack = [(was, now)]
    while stack:
        was, now = stack.pop()
        yield from _rows(was, now)
        for name in _children(was) | _children(now):
            inner = was and was.children.get(name), now and now.children.get(name)
            yield from _folders(was or now, name, *inner)
            stack.append(inner)


def _rows(was: Node | None, now: Node | None) -> Iterator[_Pair]:
    before = dict(was.rows()) if was is not None else {}
    after = dict(now.rows()) if now is not None else {}
    for name in {**before, **after}:
        one, other = before.get(name), after.get(name)
        if one is None or other is None or not same(one, other):
            folder = was or now
            assert folder is not None
            yield _Pair(
                folder,
                name,
                _Side(was, name, one) if was is not None and one is not None else None,
                _Side(now, name, other) if now is not None and other is not None else None,
            )


def _folders(folder: Node | None, name: bytes, was: Node | None, now: Node | None) -> Iterator[_Pair]:
    before = held_folder(was) if was is not None else NOTHING
    after = held_folder(now) if now is not None else NOTHING
    assert folder is not None
    if entry(before) != entry(after):
        yield _Pair(folder, name, _side(folder, name, before), _side(folder, name, after))


def _side(node: Node, name: bytes, thing: Held) -> _Side | None:
    return None if thing.kind == "absent" else _Side(node, name, thing)


def _children(node: Node | None) -> set[bytes]:
    return set(node.children) if node is not None else set()


def _brought(pairs: Iterable[_Pair], bringing: Bringing) -> dict[Place, str]:
    """Contents that lie with git, in the store; of what is there now it is enough to know them."""
    before = list(_kept(pair.before for pair in pairs))
    for node, name, row in before:
        if node.objects:
            bringing.mend(node, name, row)
    return bringing.know(_kept(pair.after for pair in pairs)) | bringing.bring(before)


def _kept(sides: Iterable[_Side | None]) -> Iterator[tuple[Node, bytes, Row]]:
    for side in sides:
        if side is not None and isinstance(side.thing, Row):
            yield side.node, side.name, side.thing


def _held(side: _Side | None, brought: Mapping[Place, str]) -> Held:
    if side is None:
        return NOTHING
    if isinstance(side.thing, Held):
        return side.thing
    at = place(side.node, side.name, side.thing)
    return held(side.thing) if at is None else held(side.thing, brought.get(at, ""))
