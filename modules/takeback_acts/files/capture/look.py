"""A look: the entries that may differ are examined, their content taken, and what differs is told.

Nothing of the tree is changed until `apply`: a look that fails leaves the baseline as it was.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable

from takeback_acts.files.capture.bringing import Bringing
from takeback_acts.files.capture.changes import Change, entry, held_folder
from takeback_acts.files.capture.entrance import Entrance
from takeback_acts.files.capture.findings import Findings
from takeback_acts.files.capture.gather import Gather, Tools
from takeback_acts.files.capture.inquiry import Asked, Inquiry
from takeback_acts.files.capture.intake import same
from takeback_acts.files.capture.marks import Own, mark, own_mark
from takeback_acts.files.capture.node import Node, walk
from takeback_acts.files.capture.repacking import Repacking
from takeback_acts.files.capture.row import Row, Source, oid
from takeback_acts.files.capture.tour import Tour
from takeback_acts.files.capture.tree import Tree
from takeback_acts.files.passages import is_shut, true_mode

_TRIES = 3


class Look:
    """One look at a root. Calls block."""

    def __init__(self, tree: Tree, root: int, tools: Tools) -> None:
        self._tree = tree
        self.top = tree.top
        self._root = root
        self._tools = tools
        self._entrance = Entrance(root, tree.top)
        self.tour = Tour(root, tree.top, self._entrance.let_in)
        self.inquiry = Inquiry(self.tour)
        self._findings = Findings()
        self._edits: list[Callable[[], None]] = []
        self._spared: dict[tuple[int, ...], Row] = {}
        self._started = time.time_ns()
        self.afresh: set[tuple[Node, bytes]] = set()
        self.left: list[Node] = []
        self.opened: list[Node] = []

    def examine(self) -> None:
        """Examines all that was asked for: what is gone first, so that what only moved is recognised."""
        for node in self.inquiry.order:
            self._all_gone(node)
        # A folder that turns out to be another one than it was asks for more on the way.
        for node in self.inquiry.order:
            asked = self.inquiry.asked[node]
            self._all_gone(node)
            try:
                self.tour.to(node)
            except OSError:
                self._edits.append(node.unsettle)
                self._from_above(node)
                continue
            if self.inquiry.entered(node):
                # The scan could not; so nothing is known yet of what lies there.
                self.inquiry.whole(node)
                self._all_gone(node)
            try:
                self._folder(self.tour.to(node), node, asked)
                for name in list(asked.names):
                    self._examine(self.tour.to(node), node, name)
            except OSError:
                # It is gone with a folder above it, which is told there or by the next look.
                self._edits.append(node.unsettle)

    def changes(self, bringing: Bringing, repacking: Repacking) -> list[Change]:
        """What differs; contents that lie with kept git objects are brought into the store for it."""
        return self._findings.changes(bringing, repacking)

    def apply(self) -> None:
        """Advances the tree to what was seen."""
        for edit in self._edits:
            edit()
        self._edits.clear()

    def close(self) -> None:
        """Lets go of every folder."""
        self.tour.close()
        self._entrance.close()

    def _folder(self, folder: int, node: Node, asked: Asked) -> None:
        if asked.own is not None or asked.mode:
            self._entry(node, os.fstat(folder), asked.own)

    def _from_above(self, node: Node) -> None:
        """Tells of a folder that can't be entered any more what the folder above it says."""
        with contextlib.suppress(OSError):
            if node.parent is not None:
                above = self.tour.to(node.parent)
                found = os.stat(node.name, dir_fd=above, follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode) and own_mark(found)[1:3] == node.own[1:3]:
                    self._entry(node, found, None)

    def _entry(self, node: Node, found: os.stat_result, listed: Own | None) -> None:
        """Tells how a folder's own entry differs; `listed` is its mark from before it was listed."""
        own = (true_mode(found), *(listed or node.own)[1:])
        before = held_folder(node)
        # Names may have changed unseen since a listing within the same tick.
        settled = listed is not None and max(own[3], own[4]) < self._started - 2_100_000_000
        after = before._replace(mode=own[0], mtime_ns=own[3], uid=found.st_uid, gid=found.st_gid)
        if entry(before) != entry(after):
            self._findings.add(_above(node), node.name, before, after)
        self._edits.append(lambda: node.know_own(own, found, settled=settled))

    def _all_gone(self, node: Node) -> None:
        asked = self.inquiry.asked[node]
        for name in asked.gone:
            self._gone(node, name)
        asked.names -= asked.gone
        asked.went |= asked.gone
        asked.gone.clear()

    def _gone(self, node: Node, name: bytes) -> None:
        row, child = node.row(name), node.children.get(name)
        if row is not None:
            self._findings.add(node, name, row, None)
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
                return self._directory(folder, node, name, found)
            row = self._taken(folder, node, name, found)
            if row is not None:
                return self._plain(node, name, row)
        self.inquiry.note(f"unstable: {os.fsdecode(node.path())}")
        return None

    def _taken(self, folder: int, node: Node, name: bytes, found: os.stat_result) -> Row | None:
        before = node.row(name)
        open_ = (node, name) in self.afresh
        if before is not None and before.mark == mark(found) and not before.racy and not open_:
            return before
        if node.objects:
            return self._object(folder, node, name, found)
        was = _Was(before) if before is not None and before.source == Source.GIT else None
        row = self._tools.intake.take(folder, name, found, was)
        return row._replace(racy=True) if row is not None and open_ else row

    def _object(self, folder: int, node: Node, name: bytes, found: os.stat_result) -> Row | None:
        before = node.row(name)
        # git writes no object in place: what somebody else did with one is read, as of any file.
        if before is not None and before.mark[:3] != mark(found)[:3]:
            return self._tools.objects.copy(folder, name, found)
        return self._tools.objects.take(folder, node, name, found)

    def _plain(self, node: Node, name: bytes, row: Row) -> None:
        before, child = node.row(name), node.children.get(name)
        if before == row:
            return
        if child is not None:
            self._cut(node, name, child, row)
        elif before is None or not same(before, row):
            self._findings.add(node, name, before, row)
        self._edits.append(lambda: self._tree.put(node, name, row))

    def _directory(self, folder: int, node: Node, name: bytes, found: os.stat_result) -> None:
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
            if name == b"objects":
                gather.adopt(folder, node, top)
            gather.fill(top)
            self.left += gather.left
        self._findings.add(node, name, row, held_folder(top))
        self._findings.all_below(top)
        if row is not None:
            self._edits.append(lambda: self._tree.remove(node, name))
        self._edits.append(lambda: self._graft(node, top))

    def _same_folder(self, child: Node, found: os.stat_result) -> None:
        if child.left != Source.NONE:
            before = held_folder(child)
            after = before._replace(
                mode=found.st_mode, mtime_ns=found.st_mtime_ns, uid=found.st_uid, gid=found.st_gid
            )
            if entry(before) != entry(after):
                self._findings.add(_above(child), child.name, before, after)
            self._edits.append(lambda: child.know(found, settled=True))
            if self._may_be_entered(child, found):
                self._opened(child)
        elif (found.st_dev, child in self.inquiry.asked) != (child.own[2], False):
            return
        elif found.st_ino != child.own[1] or (is_shut(true_mode(found)) and self._enters(child)):
            self.inquiry.whole(child)
        elif (true_mode(found), found.st_uid, found.st_gid) != (child.own[0], child.uid, child.gid):
            self._entry(child, found, None)

    def _enters(self, child: Node) -> bool:
        """Whether a folder that is shut by now, and was not, can be looked into all the same."""
        if is_shut(child.own[0]):
            return False
        with contextlib.suppress(OSError):
            self.tour.to(child)
            self.inquiry.entered(child)
            return True
        return False

    def _may_be_entered(self, child: Node, found: os.stat_result) -> bool:
        """Whether a folder that was passed by is worth another try."""
        if child.left == Source.LEFT_OUT and not self._tools.left_out.by_name(child.name):
            with contextlib.suppress(OSError):
                return not self._tools.left_out.by_marker(self.tour.to(child), child.name)
        if child.left == Source.MOUNT:
            return found.st_dev == self._tools.device
        return child.left == Source.DENIED

    def _opened(self, child: Node) -> None:
        """A folder that could not be entered before: what it holds was there, so nothing of it is told."""
        top = Node(_above(child), child.name)
        Gather(self._tools, self.tour).fill(top)
        if top.left == Source.NONE:
            self.opened.append(top)
            self._edits.append(lambda: self._tree.forget(child))
            self._edits.append(lambda: self._graft(_above(top), top))

    def _cut(self, node: Node, name: bytes, child: Node, after: Row | None) -> None:
        self._findings.add(node, name, held_folder(child), after)
        for below in walk(child):
            for inner, row in below.rows():
                self._findings.add(below, inner, row, None)
                if row.source in (Source.BLOB, Source.LINK) and not row.racy:
                    mode, inode, size, mtime, ctime = row.mark
                    self._spared[inode, ctime, mtime, size, mode] = row
            for inner, folder in below.children.items():
                self._findings.add(below, inner, held_folder(folder), None)
        self._edits.append(lambda: self._drop(node, name, child))

    def _drop(self, node: Node, name: bytes, child: Node) -> None:
        if node.children.get(name) is child:
            del node.children[name]
        self._tree.forget(child)

    def _graft(self, node: Node, top: Node) -> None:
        node.children[top.name] = top
        for below in walk(top):
            self._tree.adopt(below)


class _Was:
    """What git had of a file when it was last looked at."""

    def __init__(self, row: Row) -> None:
        self._oid, self._size = oid(row.digest), row.mark[2]

    def expected(self, name: bytes, size: int) -> bytes | None:
        return self._oid if size == self._size else None


def _above(node: Node) -> Node:
    # The root lies in nothing that is known; its own change is told with an empty name.
    return node if node.parent is None else node.parent
