"""A node of the baseline: a folder in memory, and in it columns with a row for all that is no folder."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator

from takeback_acts.files.capture.known import Known
from takeback_acts.files.capture.marks import COLUMNS, Own, own_mark
from takeback_acts.files.capture.row import Row, Source

DIGEST = 32
_RACY, _LINKED, _GONE = 1, 2, 4


class Node:
    """A folder. `left` is NONE for one that is entered, else the reason why it is not; `objects` says that it
    is the folder of a git repository's objects, or in it, and `repository` has the number of their keep.

    The rows are kept in columns. A deleted row stays as a gap until `compact`; `stamp` grows with each edit.
    """

    __slots__ = (
        "parent", "name", "number", "own", "uid", "gid", "left", "settled", "children", "stamp", "repository",
        "objects",
        "_names", "_marks", "_owners", "_flags", "_sources", "_digests", "_targets", "_index", "_gaps",
    )  # fmt: skip

    def __init__(self, parent: Node | None, name: bytes, found: os.stat_result | None = None) -> None:
        self.parent, self.name, self.number = parent, name, 0
        self.own: Own = (0, 0, 0, 0, 0)
        self.uid = self.gid = 0
        self.left = Source.NONE
        self.settled = False
        self.children: dict[bytes, Node] = {}
        self.stamp = 0
        self.objects: bool = parent is not None and parent.objects
        self.repository: int = parent.repository if parent is not None and parent.objects else -1
        self._names = bytearray()
        self._marks = array("q")
        self._owners = array("Q")
        self._flags = bytearray()
        self._sources = bytearray()
        self._digests = bytearray()
        self._targets: dict[bytes, bytes] = {}
        self._index: dict[bytes, int] | None = None
        self._gaps = 0
        if found is not None:
            self.know(found, settled=False)

    def know(self, found: os.stat_result, *, settled: bool) -> None:
        """Takes over a folder's own stat; `settled` says that its names can't have changed since unseen."""
        self.own = own_mark(found)
        self.uid, self.gid = found.st_uid, found.st_gid
        self.settled = settled
        self.stamp += 1

    def know_own(self, own: Own, found: os.stat_result, *, settled: bool) -> None:
        """Takes over a mark that was taken before the folder was listed, with the owner of now."""
        self.own, self.settled = own, settled
        self.uid, self.gid = found.st_uid, found.st_gid
        self.stamp += 1

    def unsettle(self) -> None:
        """Has the next scan list the folder, whatever its mark."""
        self.settled = False
        self.stamp += 1

    @property
    def place(self) -> tuple[Node | None, bytes]:
        """The folder above, and the name in it."""
        return self.parent, self.name

    def path(self) -> bytes:
        """The path from the root down, without a `/` at either end; the root's own is empty."""
        parts = []
        node = self
        while node.parent is not None:
            parts.append(node.name)
            node = node.parent
        return b"/".join(reversed(parts))

    def count(self) -> int:
        """How many rows there are."""
        return len(self._flags) - self._gaps

    def __contains__(self, name: bytes) -> bool:
        return name in self._indexed()

    def names(self) -> list[bytes]:
        """The names of all rows."""
        names = self._names.split(b"/")
        names.pop()
        if not self._gaps:
            return [bytes(name) for name in names]
        return [bytes(name) for name, flag in zip(names, self._flags, strict=True) if not flag & _GONE]

    def row(self, name: bytes) -> Row | None:
        """The row of a name; None when there is none."""
        at = self._indexed().get(name)
        return None if at is None else self._row(at, name)

    def rows(self) -> Iterator[tuple[bytes, Row]]:
        """All rows with their names."""
        self.compact()
        for at, name in enumerate(self.names()):
            yield name, self._row(at, name)

    def append(self, name: bytes, row: Row) -> None:
        """Adds a row whose name is not there yet."""
        if self._index is not None:
            self._index[name] = len(self._flags)
        self._names += name + b"/"
        self._marks.extend(row.mark)
        self._owners.append(row.uid << 32 | row.gid)
        self._flags.append(row.racy * _RACY | row.linked * _LINKED)
        self._sources.append(row.source)
        digest = row.digest
        self._digests += digest if len(digest) == DIGEST else digest.ljust(DIGEST, b"\0")
        if row.source == Source.LINK:
            self._targets[name] = row.target
        self.stamp += 1

    def put(self, name: bytes, row: Row) -> None:
        """Sets the row of a name."""
        at = self._indexed().get(name)
        if at is None:
            self.append(name, row)
            return
        self._marks[at * COLUMNS : (at + 1) * COLUMNS] = array("q", row.mark)
        self._owners[at] = row.uid << 32 | row.gid
        self._flags[at] = row.racy * _RACY | row.linked * _LINKED
        self._sources[at] = row.source
        self._digests[at * DIGEST : (at + 1) * DIGEST] = row.digest.ljust(DIGEST, b"\0")
        self._targets.pop(name, None)
        if row.source == Source.LINK:
            self._targets[name] = row.target
        self.stamp += 1

    def remove(self, name: bytes) -> None:
        """Takes a row out, if it is there."""
        at = self._indexed().pop(name, None)
        if at is not None:
            self._flags[at] |= _GONE
            self._gaps += 1
            self._targets.pop(name, None)
            self.stamp += 1

    def flagged(self, *, racy: bool, linked: bool) -> list[bytes]:
        """The names of rows that are racy, or have further names somewhere."""
        wanted = racy * _RACY | linked * _LINKED
        if not any(flag & wanted for flag in set(self._flags)):
            return []
        return [name for name, flag in zip(self.names(), self._live_flags(), strict=True) if flag & wanted]

    def of_inodes(self, wanted: set[int]) -> list[bytes]:
        """The names of rows with one of these inodes."""
        self.compact()
        inodes = self._marks[1::COLUMNS]
        if wanted.isdisjoint(inodes):
            return []
        return [name for name, inode in zip(self.names(), inodes, strict=True) if inode in wanted]

    def known(self) -> Known:
        """What a scan needs of the folder."""
        self.compact()
        return Known(self.own, self.settled, bytes(self._names), self._marks)

    def digests(self, source: Source) -> Iterator[bytes]:
        """The names of contents that lie in one kind of place."""
        self.compact()
        for at, held in enumerate(self._sources):
            if held == source:
                yield bytes(self._digests[at * DIGEST : (at + 1) * DIGEST])

    def names_of(self, source: Source) -> list[bytes]:
        """The names of rows whose contents lie in one kind of place."""
        if source not in self._sources:
            return []
        self.compact()
        return [name for name, held in zip(self.names(), self._sources, strict=True) if held == source]

    def compact(self) -> None:
        """Closes the gaps that deleted rows left."""
        if not self._gaps:
            return
        rows = [(name, self._row(at, name)) for name, at in sorted(self._indexed().items(), key=_second)]
        for column in (self._names, self._flags, self._sources, self._digests):
            column.clear()
        self._marks, self._owners = array("q"), array("Q")
        self._targets, self._index, self._gaps = {}, None, 0
        for name, row in rows:
            self.append(name, row)

    def columns(self) -> tuple[bytes, ...]:
        """The rows as bytes, for the shelf."""
        self.compact()
        targets = b"".join(name + b"\0" + target + b"\0" for name, target in self._targets.items())
        return (
            bytes(self._names), self._marks.tobytes(), self._owners.tobytes(), bytes(self._flags),
            bytes(self._sources), bytes(self._digests), targets,
        )  # fmt: skip

    def fill(self, columns: tuple[bytes, ...]) -> None:
        """Takes the rows from bytes; raises ValueError when the columns do not fit each other."""
        names, marks, owners, flags, sources, digests, targets = columns
        self._names, self._flags, self._sources = bytearray(names), bytearray(flags), bytearray(sources)
        self._marks, self._owners, self._digests = array("q", marks), array("Q", owners), bytearray(digests)
        parts = targets.split(b"\0")
        self._targets = dict(zip(parts[0::2], parts[1::2], strict=False))
        count = len(flags)
        lengths = names.count(b"/"), len(self._marks) // COLUMNS, len(owners) // 8, len(sources)
        if any(length != count for length in (*lengths, len(digests) // DIGEST)):
            raise ValueError("columns of different lengths")

    def _row(self, at: int, name: bytes) -> Row:
        owner, flags = self._owners[at], self._flags[at]
        mode, inode, size, mtime, ctime = self._marks[at * COLUMNS : (at + 1) * COLUMNS]
        source = Source(self._sources[at])
        return Row(
            (mode, inode, size, mtime, ctime),
            owner >> 32,
            owner & 0xFFFFFFFF,
            bool(flags & _LINKED),
            bool(flags & _RACY),
            source,
            bytes(self._digests[at * DIGEST : (at + 1) * DIGEST]),
            self._targets.get(name, b""),
        )

    def _indexed(self) -> dict[bytes, int]:
        if self._index is None:
            names = self._names.split(b"/")
            names.pop()
            flags = self._flags
            self._index = {bytes(name): at for at, name in enumerate(names) if not flags[at] & _GONE}
        return self._index

    def _live_flags(self) -> bytes:
        return bytes(flag for flag in self._flags if not flag & _GONE)


def walk(top: Node) -> Iterator[Node]:
    """A folder and all below it, parents first."""
    stack = [top]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.children.values())


def _second(item: tuple[bytes, int]) -> int:
    return item[1]
