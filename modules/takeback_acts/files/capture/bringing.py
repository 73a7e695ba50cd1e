"""Bringing: contents that lie with kept git objects are put into the store, once something needs them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from takeback.errors import TakebackError
from takeback_acts.files.capture.intake import Contents, Taker
from takeback_acts.files.capture.node import Node
from takeback_acts.files.capture.repositories import Repositories
from takeback_acts.files.capture.row import Row, Source, oid
from takeback_acts.files.reading import Digester, digest

# Where a row's content lies: the number of a keep, and the name of an object or of a file of objects.
Place = tuple[int, bytes]
Rows = Iterable[tuple[Node, bytes, Row]]


class Bringing:
    """Calls block. With `keeping` off there is no room: what comes too late for it is not brought."""

    def __init__(self, contents: Contents, repositories: Repositories, *, keeping: bool) -> None:
        self._contents = contents
        self._repositories = repositories
        self._keeping = keeping

    def bring(self, rows: Rows) -> dict[Place, str]:
        """Puts the contents of rows into the store; what is not there, or damaged, is not in the answer."""
        found = dict(self._taken(rows, self._contents))
        try:
            self._contents.sync()
        except TakebackError:
            if self._keeping:
                raise
            return {}
        return found

    def know(self, rows: Rows) -> dict[Place, str]:
        """The same for contents that need not be kept where there is no room, so that they are known."""
        return self.bring(rows) if self._keeping else dict(self._taken(rows, _Known()))

    def mend(self, node: Node, name: bytes, row: Row) -> None:
        """Gives a keep a copy of an object's file that was taken into the store, unless it has it still."""
        if node.repository < 0 or row.source != Source.BLOB:
            return
        keep = self._repositories.keep(node.repository)
        if keep.differs(node.name, name, size=row.mark[2], mtime_ns=row.mark[3]):
            # Without, what counts on the object is told as lost.
            with contextlib.suppress(TakebackError, OSError):
                keep.replace(node.name, name, self._contents.get(row.digest.hex()))

    def _taken(self, rows: Rows, taker: Taker) -> Iterator[tuple[Place, str]]:
        objects: dict[int, dict[bytes, None]] = {}
        files: dict[Place, None] = {}
        for node, name, row in rows:
            at = place(node, name, row)
            if at is not None and row.source == Source.GIT:
                objects.setdefault(at[0], {})[at[1]] = None
            elif at is not None:
                files[at] = None
        for at in files:
            with self._room():
                if sha256 := self._repositories.put_file(*at, taker):
                    yield at, sha256
        for number, names in objects.items():
            for git_name, data in self._repositories.fetch(number, list(names)):
                with self._room():
                    yield (number, git_name), taker.put(data)

    @contextlib.contextmanager
    def _room(self) -> Iterator[None]:
        try:
            yield
        except TakebackError:
            if self._keeping:
                raise


class _Known:
    """Takes nothing but the digest."""

    def put_file(self, handle: int, size: int) -> str:
        return Digester().file(handle, size)[0]

    def put(self, data: bytes) -> str:
        return digest(data)


def place(node: Node, name: bytes, row: Row) -> Place | None:
    """Where the content of a row lies; None when it is in the store, or nowhere."""
    if row.source == Source.GIT:
        return node.repository, oid(row.digest)
    return (node.repository, node.name + b"/" + name) if row.source == Source.KEPT else None
