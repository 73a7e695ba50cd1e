"""A look: the entries that may differ are examined, their content taken, and what differs is told.

Nothing of the tree is changed until `apply`: a look that fails leaves the baseline as it was.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from takeback_acts.files.capture import scan
from takeback_acts.files.capture.changes import NOTHING, Change, Held, held, held_folder, what_changed
from takeback_acts.files.capture.gather import Gather, Tools
from takeback_acts.files.capture.intake import same_content
from takeback_acts.files.capture.marks import Own, mark
from takeback_acts.files.capture.node import Node, walk
from takeback_acts.files.capture.row import Row, Source
from takeback_acts.files.capture.scan import Difference
from takeback_acts.files.capture.tour import Tour
from takeback_acts.files.capture.tree import Tree

_TRIES = 3
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}


@dataclass(slots=True)
class Asked:
    """What to examine of a folder: names that may differ, and names that are gone.

    `went` are those that were told already. `own` is the folder's own mark; with `mode` it is looked up.
    """

    names: set[bytes] = field(default_factory=set)
    gone: set[bytes] = field(default_factory=set)
    went: set[bytes] = field(default_factory=set)
    own: Own | None = None
    mode: bool = False


Raw = tuple[Node, bytes, "Row | Held | None", "Row | Held | None"]


class Look:
    """One look at a root. Calls block."""

    def __init__(self, tree: Tree, root: int, tools: Tools) -> None:
        self._tree = tree
        self.top = tree.top
        self._root = root
        self._tools = tools
        self.tour = Tour(root, tree.top)
        self.asked: dict[Node, Asked] = {}
        self._order: list[Node] = []
        self._raw: list[Raw] = []
        self._edits: list[Callable[[], None]] = []
        self._spared: dict[tuple[int, ...], Row] = {}
        self._started = time.time_ns()
        self.afresh: set[tuple[Node, bytes]] = set()
        self.left: list[Node] = []
        self.notes: list[str] = []

    def ask(self, node: Node) -> Asked:
        """What is to be examined of a folder, to be added to."""
        if node not in self.asked:
            self.asked[node] = Asked()
            self._order.append(node)
        return self.asked[node]

    def differs(self, nodes: dict[int, Node], differences: Iterable[Difference]) -> None:
        """Asks for all that a scan found."""
        for difference in differences:
            node = nodes[difference.number]
            if difference.error:
                self._lost(node, difference.error)
                continue
            asked, there = self.ask(node), set(difference.folders or ())
            asked.own = difference.own
            asked.names.update(difference.altered)
            asked.gone.update(name for name in difference.gone if name not in there)
            if difference.folders is not None:
                asked.names.update(name for name in there if name not in node.children)
                gone = node.children.keys() - there
                asked.gone.update(gone.difference(difference.altered))

    def whole(self, node: Node) -> None:
        """Asks for all that differs in a folder and below, by looking at everything there."""
        steps, nodes = [], {}
        for below in walk(node):
            if below.left == Source.NONE:
                nodes[below.number] = below
                steps.append(below)
        found = []
        for below in steps:
            try:
                known = below.known()._replace(settled=False)
                folder = self.tour.to(below)
                difference = scan.compare(folder, below.number, known, os.fstat(folder))
            except OSError as error:
                difference = Difference(below.number, None, [], [], None, error.errno or 5)
            if difference is not None:
                found.append(difference)
        self.differs(nodes, found)

    def examine(self) -> None:
        """Examines all that was asked for: what is gone first, so that what only moved is recognised."""
        for node in self._order:
            self._all_gone(node)
        # A folder that turns out to be another one than it was asks for more on the way.
        for node in self._order:
            asked = self.asked[node]
            self._all_gone(node)
            try:
                self._folder(self.tour.to(node), node, asked)
                for name in list(asked.names):
                    self._examine(self.tour.to(node), node, name)
            except OSError:
                # It is gone with a folder above it, which is told there or by the next look.
                self._edits.append(node.unsettle)

    def changes(self, fetch: Callable[[int, list[bytes]], dict[bytes, str]]) -> list[Change]:
        """What differs; `fetch` brings contents out of kept git objects into the store, as digests."""
        wanted: dict[int, list[bytes]] = {}
        for node, _, before, _ in self._raw:
            if isinstance(before, Row) and before.source == Source.GIT:
                wanted.setdefault(node.repository, []).append(_oid(before))
        brought = {number: fetch(number, list(dict.fromkeys(oids))) for number, oids in wanted.items()}
        found = []
        for node, name, before, after in self._raw:
            was, now = _held(node, before, brought), _held(node, after, {})
            found.append(Change(node, name, what_changed(was, now), was, now))
        return found

    def apply(self) -> None:
        """Advances the tree to what was seen."""
        for edit in self._edits:
            edit()
        self._edits.clear()

    def close(self) -> None:
        """Lets go of every folder."""
        self.tour.close()

    def _folder(self, folder: int, node: Node, asked: Asked) -> None:
        if asked.own is None and not asked.mode:
            return
        found = os.fstat(folder)
        own = asked.own or (found.st_mode, *node.own[1:])
        before = held_folder(node)
        # Names may have changed unseen since a listing within the same tick.
        settled = asked.own is not None and max(own[3], own[4]) < self._started - 2_100_000_000
        if own[0] != node.own[0]:
            after = before._replace(mode=own[0], mtime_ns=own[3], uid=found.st_uid, gid=found.st_gid)
            self._tell(_above(node), node.name, before, after)
        self._edits.append(lambda: node.know_own(own, found, settled=settled))

    def _all_gone(self, node: Node) -> None:
        asked = self.asked[node]
        for name in asked.gone:
            self._gone(node, name)
        asked.names -= asked.gone
        asked.went |= asked.gone
        asked.gone.clear()

    def _gone(self, node: Node, name: bytes) -> None:
        row, child = node.row(name), node.children.get(name)
        if row is not None:
            self._tell(node, name, row, None)
            self._edits.append(lambda: self._tree.remove(node, name))
        if child is not None:
            self._cut(node, name, child, None)

    def _examine(self, folder: int, node: Node, name: bytes) -> None:
        for _ in range(_TRIES):
            try:
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                return self._gone(node, name)
            except OSError:
                break
            if stat.S_ISDIR(found.st_mode):
                return self._directory(node, name, found)
            row = self._taken(folder, node, name, found)
            if row is not None:
                return self._plain(node, name, row)
        self.notes.append(f"unstable: {os.fsdecode(node.path())}")
        return None

    def _taken(self, folder: int, node: Node, name: bytes, found: os.stat_result) -> Row | None:
        before = node.row(name)
        open_ = (node, name) in self.afresh
        if before is not None and before.mark == mark(found) and not before.racy and not open_:
            return before
        was = _Was(before) if before is not None and before.source == Source.GIT else None
        row = self._tools.intake.take(folder, name, found, was)
        return row._replace(racy=True) if row is not None and open_ else row

    def _plain(self, node: Node, name: bytes, row: Row) -> None:
        before, child = node.row(name), node.children.get(name)
        if before == row:
            return
        if child is not None:
            self._cut(node, name, child, row)
        elif before is None or not same_content(before, row):
            self._tell(node, name, before, row)
        self._edits.append(lambda: self._tree.put(node, name, row))

    def _directory(self, node: Node, name: bytes, found: os.stat_result) -> None:
        child, row = node.children.get(name), node.row(name)
        if child is not None:
            self._same_folder(child, found)
            return
        top = Node(node, name, found)
        gather = Gather(self._tools, self.tour, self._spared)
        if self._tools.left_out.by_name(name):
            top.left = Source.LEFT_OUT
            self.left.append(top)
        else:
            gather.fill(top)
            self.left += gather.left
        self._tell(node, name, row, held_folder(top))
        self._tell_below(top)
        if row is not None:
            self._edits.append(lambda: self._tree.remove(node, name))
        self._edits.append(lambda: self._graft(node, top))

    def _same_folder(self, child: Node, found: os.stat_result) -> None:
        if child.left != Source.NONE:
            before = held_folder(child)
            after = before._replace(mode=found.st_mode, mtime_ns=found.st_mtime_ns)
            if before.mode != after.mode:
                self._tell(_above(child), child.name, before, after)
            self._edits.append(lambda: child.know(found, settled=True))
            if child.left == Source.DENIED:
                self._opened(child)
        elif (found.st_dev, child in self.asked) != (child.own[2], False):
            return
        elif found.st_ino != child.own[1]:
            self.whole(child)
        elif found.st_mode != child.own[0]:
            self._folder(self.tour.to(child), child, Asked(mode=True))

    def _opened(self, child: Node) -> None:
        """A folder that could not be entered before: what it holds was there, so nothing of it is told."""
        top = Node(_above(child), child.name)
        Gather(self._tools, self.tour).fill(top)
        if top.left == Source.NONE:
            self._edits.append(lambda: self._graft(_above(top), top))

    def _cut(self, node: Node, name: bytes, child: Node, after: Row | None) -> None:
        self._tell(node, name, held_folder(child), after)
        for below in walk(child):
            for inner, row in below.rows():
                self._tell(below, inner, row, None)
                if row.source in (Source.BLOB, Source.LINK) and not row.racy:
                    mode, inode, size, mtime, ctime = row.mark
                    self._spared[inode, ctime, mtime, size, mode] = row
            for inner, folder in below.children.items():
                self._tell(below, inner, held_folder(folder), None)
        self._edits.append(lambda: self._drop(node, name, child))

    def _tell(self, node: Node, name: bytes, before: Row | Held | None, after: Row | Held | None) -> None:
        self._raw.append((node, name, before, after))

    def _tell_below(self, top: Node) -> None:
        for below in walk(top):
            for inner, row in below.rows():
                self._tell(below, inner, None, row)
            for inner, folder in below.children.items():
                self._tell(below, inner, None, held_folder(folder))

    def _drop(self, node: Node, name: bytes, child: Node) -> None:
        if node.children.get(name) is child:
            del node.children[name]
        self._tree.forget(child)

    def _graft(self, node: Node, top: Node) -> None:
        node.children[top.name] = top
        for below in walk(top):
            self._tree.adopt(below)

    def _lost(self, node: Node, error: int) -> None:
        if node.parent is not None:
            self.ask(node.parent).names.add(node.name)
        if error not in _GONE:
            self.notes.append(f"not entered ({os.strerror(error)}): {os.fsdecode(node.path())}")


class _Was:
    """What git had of a file when it was last looked at."""

    def __init__(self, row: Row) -> None:
        self._oid, self._size = _oid(row), row.mark[2]

    def expected(self, name: bytes, size: int) -> bytes | None:
        return self._oid if size == self._size else None


def _above(node: Node) -> Node:
    # The root lies in nothing that is known; its own change is told with an empty name.
    return node if node.parent is None else node.parent


def _oid(row: Row) -> bytes:
    # A name of twenty bytes is padded with zeros; one of thirty-two that ends in twelve zeros is not met.
    return row.digest[:20] if row.digest[20:] == bytes(12) else row.digest


def _held(node: Node, row: Row | Held | None, brought: dict[int, dict[bytes, str]]) -> Held:
    if row is None:
        return NOTHING
    if isinstance(row, Held):
        return row
    if row.source == Source.GIT:
        return held(row, brought.get(node.repository, {}).get(_oid(row), ""))
    return held(row)
