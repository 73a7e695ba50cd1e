"""Entrance: how a look comes into folders that were shut since they were known."""

from __future__ import annotations

import contextlib
import os

from takeback_acts.files.capture.marks import own_mark
from takeback_acts.files.capture.node import Node
from takeback_acts.files.capture.tour import Placed
from takeback_acts.files.passages import Passages, is_shut


class Entrance:
    """What a look has opened. A folder that was shut before it was known is left so."""

    def __init__(self, root: int, top: Node) -> None:
        self._passages = Passages()
        with contextlib.suppress(OSError):
            if is_shut(os.fstat(root).st_mode) and not is_shut(top.own[0]):
                self._passages.open_handle(root)

    def let_in(self, folder: int, node: Placed) -> bool:
        """Opens a known folder in an open one; answers whether it did. Raises OSError."""
        if not isinstance(node, Node) or is_shut(node.own[0]):
            return False
        found = os.stat(node.name, dir_fd=folder, follow_symlinks=False)
        return own_mark(found)[1:3] == node.own[1:3] and self._passages.open(folder, node.name)

    def close(self) -> None:
        """Shuts them again."""
        self._passages.close()
