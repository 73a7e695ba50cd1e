"""The baseline in memory: the nodes of all folders, and which of their rows need a second look."""

from __future__ import annotations

from collections.abc import Iterator

from takeback_acts.files.capture.node import Node, walk
from takeback_acts.files.capture.row import Row, Source
from takeback_acts.files.capture.scan import Step


class Tree:
    """All folders of a root, from `top` down."""

    def __init__(self, top: Node) -> None:
        self.top = top
        self._last = 0
        self.racy: dict[Node, set[bytes]] = {}
        self.linked: dict[Node, set[bytes]] = {}
        # Folders that are not entered, though the root's own look would find them.
        self.left: set[Node] = set()
        self.shape = 0
        for node in walk(top):
            self.adopt(node)

    def adopt(self, node: Node) -> None:
        """Makes one folder, whose parent is here already, part of the tree."""
        self._last += 1
        node.number = self._last
        self.shape += 1
        if node.left in (Source.LEFT_OUT, Source.MOUNT):
            self.left.add(node)
        self._note(self.racy, node, node.flagged(racy=True, linked=False))
        self._note(self.linked, node, node.flagged(racy=False, linked=True))

    def forget(self, node: Node) -> None:
        """Takes a folder with all below it out of what is watched over; its rows stay readable."""
        for below in walk(node):
            self.racy.pop(below, None)
            self.linked.pop(below, None)
            self.left.discard(below)
        self.shape += 1

    def put(self, node: Node, name: bytes, row: Row) -> None:
        """Sets a row."""
        node.put(name, row)
        for notes, wanted in ((self.racy, row.racy), (self.linked, row.linked)):
            self._drop(notes, node, name)
            if wanted:
                notes.setdefault(node, set()).add(name)

    def remove(self, node: Node, name: bytes) -> None:
        """Takes a row out."""
        node.remove(name)
        self._drop(self.racy, node, name)
        self._drop(self.linked, node, name)

    def count(self) -> int:
        """How many entries there are, folders counted."""
        return sum(node.count() + 1 for node in walk(self.top))

    def steps(self) -> Iterator[tuple[Node, Step]]:
        """The folders that a scan enters, parents first."""
        stack = [(self.top, 0)]
        while stack:
            node, depth = stack.pop()
            yield node, Step(node.number, depth, node.name, True)
            stack.extend((child, depth + 1) for child in node.children.values() if child.left == Source.NONE)

    @staticmethod
    def _note(notes: dict[Node, set[bytes]], node: Node, names: list[bytes]) -> None:
        if names:
            notes[node] = set(names)

    @staticmethod
    def _drop(notes: dict[Node, set[bytes]], node: Node, name: bytes) -> None:
        names = notes.get(node)
        if names is not None:
            names.discard(name)
            if not names:
                del notes[node]
