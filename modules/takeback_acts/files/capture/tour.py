"""A tour: the way between folders that are known as the nodes of a tree."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from takeback_acts.files.capture.way import Way


class Placed(Protocol):
    """A folder that knows its name and the folder above; the root has none above."""

    @property
    def place(self) -> tuple[Placed | None, bytes]: ...


P = TypeVar("P", bound=Placed)


class Tour(Generic[P]):
    """Walks from node to node; neighbours in the tree cost one step, whatever their depth."""

    def __init__(self, root: int, top: P) -> None:
        self._way = Way(root)
        self._stack: list[Placed] = [top]
        self._level: dict[Placed, int] = {top: 0}

    def to(self, node: P) -> int:
        """The open folder of a node, valid until the next move; raises OSError."""
        below: list[Placed] = []
        here: Placed = node
        while here not in self._level:
            below.append(here)
            above = here.place[0]
            assert above is not None
            here = above
        self._up(self._level[here])
        while below:
            self._down(below.pop())
        return self._way.fd

    def close(self) -> None:
        """Lets go of every folder."""
        self._way.close()

    def _up(self, depth: int) -> None:
        try:
            self._way.up(depth)
        finally:
            while len(self._stack) - 1 > self._way.depth:
                del self._level[self._stack.pop()]

    def _down(self, node: Placed) -> None:
        self._way.down(node.place[1])
        self._level[node] = len(self._stack)
        self._stack.append(node)
