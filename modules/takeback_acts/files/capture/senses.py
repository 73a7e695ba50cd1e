"""Senses: the watcher and the scan, by which a look finds out what to examine."""

from __future__ import annotations

import time

from takeback_acts.files.capture.leftout import LeftOut
from takeback_acts.files.capture.look import Look
from takeback_acts.files.capture.node import Node
from takeback_acts.files.capture.scanner import Scanner
from takeback_acts.files.capture.tree import Tree
from takeback_acts.files.capture.watch import Watch, WatchError


class Senses:
    """Of an open root. Without `watch` every look scans; a scan is made at least every so many seconds."""

    def __init__(
        self, root: int, device: int, left_out: LeftOut, *, watch: bool, scan_every: float, crew_from: int
    ) -> None:
        self._root = root
        self._left_out = left_out
        self._watched = watch
        self._scan_every = scan_every
        self.watch: Watch | None = None
        self.scanner = Scanner(root, device, crew_from)
        self._scanned = float("-inf")
        # Whether something may wait to be read again of which no event tells.
        self.short = True
        self._notes: list[str] = []

    def see(self, known: Tree | None) -> None:
        """Begins to watch."""
        if not self._watched:
            return
        try:
            self.watch = Watch(self._root, self._left_out)
            self.watch.start(known.top if known is not None else None)
        except WatchError as error:
            self._notes.append(f"watch.off: {error.strerror}")
            self._unsee()

    def enter(self, nodes: list[Node]) -> None:
        """Watches folders that were passed by so far."""
        for node in nodes if self.watch is not None else ():
            assert self.watch is not None
            self.watch.enter(node)

    def built(self) -> None:
        """Everything has just been looked at."""
        self._scanned = time.monotonic()

    def spent(self) -> None:
        """What the watcher told was not made use of, so only a scan can tell what is left to see."""
        self._scanned = float("-inf")

    def ask(self, look: Look, tree: Tree, *, scan: bool) -> str:
        """Asks for all that may differ; answers by what."""
        for node in tree.left:
            # No event and no time tells that something is mounted no more, or that work lies in it by now.
            if node.parent is not None and not self._left_out.by_name(node.name):
                look.inquiry.ask(node.parent).names.add(node.name)
        due = time.monotonic() - self._scanned > self._scan_every
        dirty = self.watch.dirty(tree.top) if self.watch is not None else []
        lost = self._see_again(tree)
        if self.watch is None or scan or due or lost:
            self._scan(look, tree)
            return "scan"
        for node, names, whole, mode in dirty:
            if whole:
                look.inquiry.whole(node)
            asked = look.inquiry.ask(node)
            asked.names |= names
            asked.mode = asked.mode or mode
        for noted in (tree.linked, tree.racy if self.short else {}):
            for node, names in noted.items():
                look.inquiry.ask(node).names |= names
        self.short = False
        return "watch"

    def said(self) -> list[str]:
        """What is to be said since it was asked last."""
        notes = [*self._notes, *self.scanner.notes]
        self._notes.clear()
        self.scanner.notes.clear()
        return notes

    def close(self) -> None:
        """Ends watching and scanning."""
        self._unsee()
        self.scanner.close()

    def _see_again(self, tree: Tree) -> bool:
        """Whether the watcher has lost its way; it begins anew where that helps."""
        if self.watch is None or not self.watch.lost:
            return False
        self._notes.append(f"watch.lost: {self.watch.lost}")
        again = self.watch.lost == "overflow"
        self._unsee()
        if again:
            self.see(tree)
        return True

    def _unsee(self) -> None:
        if self.watch is not None:
            self.watch.close()
            self.watch = None

    def _scan(self, look: Look, tree: Tree) -> None:
        nodes, found, closed = self.scanner.scan(tree)
        look.inquiry.differs(nodes, found)
        for node, names in tree.racy.items():
            look.inquiry.ask(node).names |= names
        for node, names, open_ in closed:
            look.inquiry.ask(node).names |= names | open_
            look.afresh.update((node, name) for name in open_)
        self._scanned = time.monotonic()
