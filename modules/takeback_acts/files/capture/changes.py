"""Changes: what differs between two looks at a root."""

from __future__ import annotations

import stat
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from takeback_acts.files.capture.node import Node
from takeback_acts.files.capture.row import Row, Source, kind
from takeback_acts.files.states import ABSENT, State


class What(StrEnum):
    """How a path differs."""

    CREATED = "created"
    DELETED = "deleted"
    CONTENT = "content"
    MODE = "mode"
    TYPE = "type"
    OWNER = "owner"


class Held(NamedTuple):
    """What lay at a path. `reason` says why its content could not be captured; empty when it was.

    `kind` is absent, file, link, dir or special; `sha256` names a file's bytes in the store. `linked` says
    that its inode has further names.
    """

    kind: str = "absent"
    mode: int = 0
    size: int = 0
    mtime_ns: int = 0
    uid: int = -1
    gid: int = -1
    sha256: str = ""
    target: bytes = b""
    reason: str = ""
    inode: int = 0
    linked: bool = False

    def state(self) -> State | None:
        """The same as a State; None when it can't be brought back: special, or not captured."""
        if self.kind == "absent":
            return ABSENT
        return None if self.reason else self.left()

    def own(self) -> State | None:
        """The entry by itself: its owner, and of a folder the mode; None for what is special."""
        if self.kind == "special":
            return None
        mode = stat.S_IMODE(self.mode) if self.kind == "dir" else 0
        return State.model_validate({"kind": self.kind, "mode": mode, "owner": self.uid, "group": self.gid})

    def left(self) -> State | None:
        """The same where it need not be brought back, so that its bytes need not be kept but only known."""
        if self.kind == "absent":
            return ABSENT
        if self.kind == "special" or self.reason not in ("", _UNKEPT):
            return None
        return State.model_validate(
            {
                "kind": self.kind,
                "mode": 0 if self.kind == "link" else stat.S_IMODE(self.mode),
                "mtime_ns": self.mtime_ns,
                "size": self.size if self.kind == "file" else 0,
                "sha256": self.sha256,
                "target": b64encode(self.target).decode(),
                "owner": self.uid,
                "group": self.gid,
            }
        )


_UNKEPT = Source.UNKEPT.name.lower()
NOTHING = Held()
# Reasons that are no loss: git has every object of a file that is gone, or of a new one the file itself.
REPACKED = "repacked"
WITH_GIT = "with_git"


class Change(NamedTuple):
    """A path that differs. Its folder is kept as a node: depth costs nothing until `path` is asked."""

    folder: Node
    name: bytes
    what: What
    before: Held
    after: Held

    @property
    def path(self) -> bytes:
        """The path from the root down; empty for the root itself."""
        above = self.folder.path()
        return above + b"/" + self.name if above and self.name else above or self.name


def pathed(changes: Iterable[Change]) -> Iterator[tuple[bytes, Change]]:
    """Changes with their paths. A folder's path is worked out once, however deep it lies."""
    known: dict[Node, bytes] = {}
    for change in changes:
        above = _path(change.folder, known)
        yield above + b"/" + change.name if above and change.name else above or change.name, change


def _path(node: Node, known: dict[Node, bytes]) -> bytes:
    below = []
    while node.parent is not None and node not in known:
        below.append(node)
        node = node.parent
    path = known.get(node, b"")
    for one in reversed(below):
        path = known[one] = path + b"/" + one.name if path else one.name
    return path


class RefMove(NamedTuple):
    """A reference of a git repository that moved; empty is absent, `ref: NAME` a symbolic one."""

    repository: bytes
    ref: str
    old: str
    new: str


@dataclass(slots=True)
class Changes:
    """What a look found, in paths and git references, and what must be said about it.

    `by` is how it was found: built, watch or scan. `left_out` names the folders seen this time that can be
    made again and are not captured. `moved_to` is where the root is now that was moved away. `notes` are
    codes with a path or a reason behind a colon.
    """

    by: str
    paths: list[Change] = field(default_factory=list)
    refs: list[RefMove] = field(default_factory=list)
    left_out: list[bytes] = field(default_factory=list)
    moved_to: bytes = b""
    notes: list[str] = field(default_factory=list)


def joined(first: Changes, second: Changes) -> Changes:
    """Two looks as if they had been one: each path from what it was before the first to what it is now."""
    paths = dict(pathed(first.paths))
    for path, change in pathed(second.paths):
        earlier = paths.pop(path, None)
        before = earlier.before if earlier is not None else change.before
        if _differ(before, change.after):
            what = what_changed(before, change.after)
            paths[path] = change._replace(before=before, what=what)
    refs = {(move.repository, move.ref): move for move in first.refs}
    for move in second.refs:
        old = refs.pop((move.repository, move.ref), move).old
        if old != move.new:
            refs[move.repository, move.ref] = move._replace(old=old)
    return Changes(
        second.by,
        list(paths.values()),
        list(refs.values()),
        sorted({*first.left_out, *second.left_out}),
        second.moved_to or first.moved_to,
        [*first.notes, *second.notes],
    )


def _differ(before: Held, after: Held) -> bool:
    if before.reason or after.reason:
        return True
    return entry(before) != entry(after) or (before.sha256, before.target) != (after.sha256, after.target)


def entry(held: Held) -> tuple[str, int, int, int]:
    """What an entry is beside its content: kind, mode, owner and group."""
    return held.kind, held.mode, held.uid, held.gid


def what_changed(before: Held, after: Held) -> What:
    """The one word for how a path differs."""
    if before.kind == "absent":
        return What.CREATED
    if after.kind == "absent":
        return What.DELETED
    if before.kind != after.kind:
        return What.TYPE
    same = (before.sha256, before.target, before.reason) == (after.sha256, after.target, after.reason)
    if not same or entry(before) == entry(after):
        return What.CONTENT
    return What.MODE if before.mode != after.mode else What.OWNER


def held_folder(node: Node) -> Held:
    """A folder's entry."""
    reason = "" if node.left == Source.NONE else node.left.name.lower()
    mode, inode, _, mtime, _ = node.own
    return Held("dir", mode, 0, mtime, node.uid, node.gid, reason=reason, inode=inode)


def held(row: Row | None, sha256: str | None = None) -> Held:
    """What a row says; `sha256` is where the content is now when it lay with git, empty when it is lost."""
    if row is None:
        return NOTHING
    mode, inode, size, mtime, _ = row.mark
    what, reason = kind(mode), ""
    digest = row.digest.hex() if row.source in (Source.BLOB, Source.UNKEPT) else sha256 or ""
    if what == "file" and (not digest or row.source == Source.UNKEPT):
        reason = "lost" if row.source in (Source.GIT, Source.KEPT) else row.source.name.lower()
    return Held(what, mode, size, mtime, row.uid, row.gid, digest, row.target, reason, inode, row.linked)
