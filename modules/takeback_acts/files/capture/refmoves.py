"""Where a command moved the references of the repositories in a root."""

from __future__ import annotations

from takeback_acts.files.capture.changes import RefMove
from takeback_acts.files.capture.look import Look
from takeback_acts.files.capture.repositories import Repositories
from takeback_acts.files.capture.tree import Node, Source

_GIT = b".git"


class RefMoves:
    """What references say after a look, beside what they said before it."""

    def __init__(self, repositories: Repositories, look: Look) -> None:
        self._repositories = repositories
        self._look = look
        self._now: dict[bytes, dict[str, str]] = {}

    def found(self) -> list[RefMove]:
        """The references that moved, by repository and name. Blocks."""
        touched = self._touched()
        for path in {*self._repositories.refs, *touched}:
            node = _find(self._look.top, path)
            if node is None or (inside := node.children.get(_GIT)) is None or path in touched:
                # A `.git` that is a file leads to where nobody tells us what changes.
                self._now[path] = self._read(node, path)
            elif inside.left != Source.NONE:
                self._now[path] = self._read(node, path)
        known = self._repositories.refs
        return [
            RefMove(path, ref, known[path].get(ref, ""), now.get(ref, ""))
            for path, now in sorted(self._now.items())
            if path in known
            for ref in sorted({*known[path], *now})
            if known[path].get(ref) != now.get(ref)
        ]

    def apply(self) -> None:
        """Takes over what they say now."""
        for path, refs in self._now.items():
            if refs:
                self._repositories.refs[path] = refs
            else:
                self._repositories.refs.pop(path, None)

    def _read(self, node: Node | None, path: bytes) -> dict[str, str]:
        if node is None:
            return {}
        try:
            return self._repositories.look(self._look.tour.to(node), path)
        except OSError:
            return {}

    def _touched(self) -> set[bytes]:
        """The paths of work trees whose `.git`, or something in it, was examined."""
        found: set[bytes] = set()
        seen: set[Node] = set()
        for node, asked in self._look.asked.items():
            if _GIT in asked.names or _GIT in asked.went:
                found.add(node.path())
            here: Node | None = node
            while here is not None and here not in seen:
                seen.add(here)
                if here.name == _GIT and here.parent is not None:
                    found.add(here.parent.path())
                here = here.parent
        return found


def _find(top: Node, path: bytes) -> Node | None:
    node: Node | None = top
    for name in path.split(b"/") if path else ():
        node = node.children.get(name) if node is not None else None
    return node
