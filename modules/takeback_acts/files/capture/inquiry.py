"""An inquiry: what a look is to examine, as the watcher or a scan has it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from takeback_acts.files.capture import scan
from takeback_acts.files.capture.marks import Own
from takeback_acts.files.capture.node import Node, walk
from takeback_acts.files.capture.row import Source
from takeback_acts.files.capture.scan import Difference
from takeback_acts.files.capture.tour import Tour

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


class Inquiry:
    """The folders to examine, in the order they were asked for."""

    def __init__(self, tour: Tour[Node]) -> None:
        self._tour = tour
        self.asked: dict[Node, Asked] = {}
        self.order: list[Node] = []
        self._notes: list[str] = []
        self._shut: dict[Node, str] = {}

    @property
    def notes(self) -> list[str]:
        """What must be said of the folders."""
        return [*self._notes, *self._shut.values()]

    def note(self, words: str) -> None:
        """Notes what must be said."""
        self._notes.append(words)

    def entered(self, node: Node) -> bool:
        """Takes back that a folder was not entered; answers whether that was said."""
        return self._shut.pop(node, None) is not None

    def ask(self, node: Node) -> Asked:
        """What is to be examined of a folder, to be added to."""
        if node not in self.asked:
            self.asked[node] = Asked()
            self.order.append(node)
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
            asked.gone.update(name for name in difference.gone if name not in there | asked.went)
            if difference.folders is not None:
                asked.names.update(name for name in there if name not in node.children)
                gone = node.children.keys() - there
                asked.gone.update(gone.difference(difference.altered, asked.went))

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
                folder = self._tour.to(below)
                difference = scan.compare(folder, below.number, known, os.fstat(folder))
            except OSError as error:
                difference = Difference(below.number, None, [], [], None, error.errno or 5)
            if difference is not None:
                found.append(difference)
        self.differs(nodes, found)

    def _lost(self, node: Node, error: int) -> None:
        if node.parent is not None:
            self.ask(node.parent).names.add(node.name)
        if error not in _GONE:
            self._shut[node] = f"not entered ({os.strerror(error)}): {os.fsdecode(node.path())}"
