"""The scanner: a whole tree compared with its folders on disk, by a crew when it is large."""

from __future__ import annotations

from takeback_acts.files.capture import crew, mapped
from takeback_acts.files.capture.crew import Crew, CrewError
from takeback_acts.files.capture.node import Node
from takeback_acts.files.capture.row import Source
from takeback_acts.files.capture.scan import Difference
from takeback_acts.files.capture.tree import Tree

# A folder, names of folders in it that could not be entered, and of files that may be written unseen.
Closed = tuple[Node, set[bytes], set[bytes]]
Scanned = tuple[dict[int, Node], list[Difference], list[Closed]]


class Scanner:
    """Scans a root, by a crew from `crew_from` entries on. `notes` are what must be said."""

    def __init__(self, root: int, device: int, crew_from: int) -> None:
        self._root, self._device, self._crew_from = root, device, crew_from
        self._crew: Crew | None = None
        self.notes: list[str] = []

    def scan(self, tree: Tree) -> Scanned:
        """The nodes by number, how they differ, and what no time tells."""
        return self._by_crew(tree) or self._here(tree)

    def close(self) -> None:
        """Ends the processes; the next scan starts others."""
        if self._crew is not None:
            self._crew.close()
            self._crew = None

    def _here(self, tree: Tree) -> Scanned:
        nodes, found = crew.scan_here(self._root, tree)
        return nodes, found, self._closed(nodes)

    def _by_crew(self, tree: Tree) -> Scanned | None:
        """None when the tree is small, or the crew is gone."""
        if tree.count() < self._crew_from:
            return None
        try:
            self._crew = self._crew or Crew(self._root)
            nodes = self._crew.begin(tree)
            # While the crew scans, not after it.
            closed = self._closed(nodes)
            return nodes, self._crew.finish(), closed
        except CrewError as error:
            self.notes.append(f"crew.lost: {error.strerror}")
            self.close()
        except BaseException:
            # What it will have found by then would be taken for what the next scan found.
            self.close()
            raise
        return None

    def _closed(self, nodes: dict[int, Node]) -> list[Closed]:
        """What no time tells: folders that could not be entered, and files somebody maps for writing."""
        written = mapped.inodes(self._device)
        found = []
        for node in nodes.values():
            names = {child.name for child in node.children.values() if child.left == Source.DENIED}
            open_ = set(node.of_inodes(written)) if written else set()
            if names or open_:
                found.append((node, names, open_))
        return found
