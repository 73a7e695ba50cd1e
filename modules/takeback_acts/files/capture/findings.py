"""Findings: what a look saw that differs, told once the contents are where they can be told from."""

from __future__ import annotations

from collections.abc import Callable

from takeback_acts.files.capture.changes import NOTHING, Change, Held, held, held_folder, what_changed
from takeback_acts.files.capture.node import Node, walk
from takeback_acts.files.capture.row import Row, Source, oid

# Brings contents out of a numbered keep of git objects into the store, as digests.
Fetch = Callable[[int, list[bytes]], dict[bytes, str]]


class Findings:
    """What lay at paths before and what lies there now, as rows, folders' entries, or nothing."""

    def __init__(self) -> None:
        self._raw: list[tuple[Node, bytes, Row | Held | None, Row | Held | None]] = []

    def add(self, node: Node, name: bytes, before: Row | Held | None, after: Row | Held | None) -> None:
        """Notes how a path differs."""
        self._raw.append((node, name, before, after))

    def all_below(self, top: Node) -> None:
        """Notes all that a new folder holds."""
        for below in walk(top):
            for inner, row in below.rows():
                self.add(below, inner, None, row)
            for inner, folder in below.children.items():
                self.add(below, inner, None, held_folder(folder))

    def changes(self, fetch: Fetch) -> list[Change]:
        """What differs, in the order it was noted."""
        wanted: dict[int, list[bytes]] = {}
        for node, _, before, _ in self._raw:
            if isinstance(before, Row) and before.source == Source.GIT:
                wanted.setdefault(node.repository, []).append(oid(before.digest))
        brought = {number: fetch(number, list(dict.fromkeys(oids))) for number, oids in wanted.items()}
        found = []
        for node, name, before, after in self._raw:
            was, now = _held(node, before, brought), _held(node, after, {})
            found.append(Change(node, name, what_changed(was, now), was, now))
        return found


def _held(node: Node, row: Row | Held | None, brought: dict[int, dict[bytes, str]]) -> Held:
    if row is None:
        return NOTHING
    if isinstance(row, Held):
        return row
    if row.source == Source.GIT:
        return held(row, brought.get(node.repository, {}).get(oid(row.digest), ""))
    return held(row)
