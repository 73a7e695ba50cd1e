"""Where a command moved the references of the repositories in a root."""

from __future__ import annotations

from takeback_acts.files.capture.changes import RefMove
from takeback_acts.files.capture.look import Look
from takeback_acts.files.capture.node import Node
from takeback_acts.files.capture.repositories import Repositories
from takeback_acts.files.capture.row import Source

_GIT = b".git"


class RefMoves:
    """What references say after a look, beside what they said before it."""

    def __init__(self, repositories: Repositories, look: Look) -> None:
        self._repositories = repositories
        self._look = look
        self._now: dict[bytes, dict[str, str]] = {}

    def found(self) -> list[RefMove]:
        """The references that moved, by repository and name. Blocks."""
        touched, known, fresh = self._touched(), self._repositories.refs, self._repositories.fresh
        for path in {*known, *touched}:
            now = fresh[path] if path in fresh else self._read(path, path in touched)
            if now is not None:
                self._now[path] = now
        return [
            RefMove(path, ref, known[path].get(ref, ""), now.get(ref, ""))
            for path, now in sorted(self._now.items())
            if path in known
            for ref in sorted({*known[path], *now})
            if known[path].get(ref) != now.get(ref)
        ]

    def apply(self) -> None:
        """Takes over what they say now."""
        self._repositories.settle(self._now)

    def _read(self, path: bytes, touched: bool) -> dict[str, str] | None:
        """What they say, empty without a work tree; None when nothing of it was touched."""
        node = _find(self._look.top, path)
        if node is None:
            return {}
        try:
            work = self._look.tour.to(node)
        except OSError:
            return {}
        inside = node.children.get(_GIT)
        # A `.git` that is a file leads to where nobody tells us what changes.
        if inside is not None and inside.left == Source.NONE and not touched:
            return None
        return self._repositories.look(work, path)

    def _touched(self) -> set[bytes]:
        """The paths of work trees whose `.git`, or something in it, was examined."""
        found: set[bytes] = set()
        seen: set[Node] = set()
        for node, asked in self._look.inquiry.asked.items():
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
