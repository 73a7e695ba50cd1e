"""A tour: the way between folders that are known as the nodes of a tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from takeback_acts.files.capture.way import Way
from takeback_acts.files.passages import is_shut


class Placed(Protocol):
    """A folder that knows its name and the folder above; the root has none above."""

    @property
    def place(self) -> tuple[Placed | None, bytes]: ...


P = TypeVar("P", bound=Placed)


class Tour(Generic[P]):
    """Walks from node to node; neighbours in the tree cost one step, whatever their depth.

    `let_in` opens a folder of an open one that is shut, if it may.
    """

    def __init__(self, root: int, top: P, let_in: Callable[[int, Placed], bool] | None = None) -> None:
        self._let_in = let_in
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
        if self._let_in is None:
            self._way.down(node.place[1])
        else:
            self._enter(node, self._let_in)
        self._level[node] = len(self._stack)
        self._stack.append(node)

    def _enter(self, node: Placed, let_in: Callable[[int, Placed], bool]) -> None:
        folder, name = self._way.fd, node.place[1]
        try:
            found = self._way.down(name)
        except PermissionError:
            if not let_in(folder, node):
                raise
            self._way.down(name)
        else:
            # Its names can be read by now, but nothing of what they stand for.
            if is_shut(found.st_mode):
                let_in(folder, node)
