"""Findings: what a look saw that differs, told once the contents are where they can be told from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from takeback_acts.files.capture.bringing import Bringing, Place, place
from takeback_acts.files.capture.changes import (
    NOTHING,
    REPACKED,
    WITH_GIT,
    Change,
    Held,
    held,
    held_folder,
    what_changed,
)
from takeback_acts.files.capture.node import Node, walk
from takeback_acts.files.capture.repacking import Raw, Repacking
from takeback_acts.files.capture.row import Row


class Findings:
    """What lay at paths before and what lies there now, as rows, folders' entries, or nothing."""

    def __init__(self) -> None:
        self._raw: list[Raw] = []
        # Where what is new lies in a repository that was there before.
        self._added: set[int] = set()

    def add(self, node: Node, name: bytes, before: Row | Held | None, after: Row | Held | None) -> None:
        """Notes how a path differs."""
        if before is None and node.objects:
            self._added.add(len(self._raw))
        self._raw.append((node, name, before, after))

    def all_below(self, top: Node) -> None:
        """Notes all that a new folder holds."""
        added = top.parent is not None and top.parent.objects
        for below in walk(top):
            start = len(self._raw)
            self._raw += [(below, inner, None, row) for inner, row in below.rows()]
            self._raw += [(below, name, None, held_folder(node)) for name, node in below.children.items()]
            if added:
                self._added.update(range(start, len(self._raw)))

    def changes(self, bringing: Bringing, repacking: Repacking) -> list[Change]:
        """What differs, in the order it was noted."""
        passed = repacking.passed(self._raw)
        for at, (node, name, before, _) in enumerate(self._raw):
            # Before anything is brought out of what somebody may have written into.
            if node.objects and isinstance(before, Row) and at not in passed:
                bringing.mend(node, name, before)
        brought = bringing.know(self._rows(passed | self._added, 3))
        brought |= bringing.bring(self._rows(passed, 2))
        found = []
        for at, (node, name, before, after) in enumerate(self._raw):
            was, now = _held(node, name, before, brought), _held(node, name, after, brought)
            if at in passed:
                was = was._replace(reason=REPACKED)
            elif at in self._added and now.reason == "lost":
                now = now._replace(reason=WITH_GIT)
            found.append(Change(node, name, what_changed(was, now), was, now))
        return found

    def _rows(self, but: set[int], column: Literal[2, 3]) -> Iterator[tuple[Node, bytes, Row]]:
        """The rows of before or of now, without those at some places."""
        for at, found in enumerate(self._raw):
            if at not in but and isinstance(row := found[column], Row):
                yield found[0], found[1], row


def _held(node: Node, name: bytes, row: Row | Held | None, brought: Mapping[Place, str]) -> Held:
    if row is None:
        return NOTHING
    if isinstance(row, Held):
        return row
    at = place(node, name, row)
    return held(row) if at is None else held(row, brought.get(at, ""))
