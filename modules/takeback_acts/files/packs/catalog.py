"""The catalog: every segment, every index, and the one look-up over them all."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path

from takeback_acts.files.packs import index, segment
from takeback_acts.files.packs.disk import Handle
from takeback_acts.files.packs.index import Entry, Index
from takeback_acts.files.packs.pins import Pins
from takeback_acts.files.packs.usage import Usage

_OPEN_AT_ONCE = 32


class Volume:
    """What is known of one segment: its owners, and which slots of its index nobody needs any more."""

    def __init__(self, folder: Path, number: int, size: int) -> None:
        self.number = number
        self.path = segment.path(folder, number)
        self.size = size
        self.owners: list[str] = []
        self.count = 0
        self.dead: bytearray | None = None

    @property
    def index_path(self) -> Path:
        """The file of its own index."""
        return self.path.with_suffix(index.SUFFIX)

    @property
    def dead_path(self) -> Path:
        """The file that lists the dead slots."""
        return self.path.with_suffix(".dead")

    @property
    def kept(self) -> int:
        """How many of its blobs nobody dropped, as far as an index lists them."""
        return self.count - (self.dead.count(1) if self.dead is not None else 0)

    def is_dead(self, slot: int) -> bool:
        """Whether a sweep has dropped that slot."""
        return self.dead is not None and bool(self.dead[slot])


class Catalog:
    """Thread-safe. `lock` guards every change; look-ups need it only where they must not miss one.

    `broken` has the segments and offsets of records that turned out to be damaged. `fresh` holds the packed
    entries of the segment that is appended to, which no index lists yet. `indexes` is replaced as a whole,
    newest segments first. Whoever makes indexes or removes segments holds `mending`.
    """

    def __init__(self, folder: Path, usage: Usage) -> None:
        self.folder = folder
        self.usage = usage
        self.lock = threading.RLock()
        self.mending = threading.RLock()
        self.pins = Pins(self.lock)
        self.volumes: dict[int, Volume] = {}
        self.indexes: tuple[Index, ...] = ()
        self.fresh: dict[bytes, bytes] = {}
        self.open_number = 0
        self.broken: set[tuple[int, int]] = set()
        self._numbers = 0
        self._handles: OrderedDict[int, Handle] = OrderedDict()

    def number(self) -> int:
        """A number that no segment or run has."""
        with self.lock:
            self._numbers += 1
            return self._numbers

    def skip(self, taken: int) -> None:
        """Numbers up to this one are taken."""
        self._numbers = max(self._numbers, taken)

    def find(self, digest: bytes) -> Entry | None:
        """Where a blob lies whose bytes are not known to be broken."""
        for entry in self.places(digest):
            if not entry.flags & index.BROKEN and (entry.segment, entry.offset) not in self.broken:
                return entry
        return None

    def places(self, digest: bytes) -> Iterator[Entry]:
        """Everywhere a blob lies, newest first, what a sweep dropped left out."""
        packed = self.fresh.get(digest)
        if packed is not None:
            yield Entry.unpack(packed)
        for one in self.indexes:
            entry = one.find(digest)
            if entry is not None:
                volume = self.volumes.get(entry.segment)
                if volume is not None and not volume.is_dead(entry.slot):
                    yield entry

    def owner(self, entry: Entry) -> str:
        """The label an entry was kept for."""
        return self.volumes[entry.segment].owners[entry.owner]

    def add_indexes(self, added: Sequence[Index], instead_of: Sequence[Index] = ()) -> None:
        """Lets look-ups ask these indexes, and others no more."""
        with self.lock:
            kept = [one for one in self.indexes if not _among(one, instead_of)]
            self.indexes = tuple(sorted([*added, *kept], key=_newest, reverse=True))

    def sealed(self) -> list[Volume]:
        """The segments that have an index of their own, oldest first."""
        with self.lock:
            return [one for number, one in sorted(self.volumes.items()) if number != self.open_number]

    def remove(self, volumes: list[Volume]) -> list[Index]:
        """Forgets segments, and the indexes that are of no use then; readers that hold a handle read on."""
        gone = {volume.number for volume in volumes}
        with self.lock:
            for number in gone:
                del self.volumes[number]
                self._handles.pop(number, None)
            useless = [one for one in self.indexes if not self.volumes.keys() & set(one.about.segments)]
            self.indexes = tuple(one for one in self.indexes if not _among(one, useless))
        return useless

    def handle(self, number: int) -> Handle | None:
        """An open descriptor of a segment; None when that is gone. Raises OSError."""
        with self.lock:
            found = self._handles.get(number)
            if found is not None:
                self._handles.move_to_end(number)
                return found
            volume = self.volumes.get(number)
            if volume is None:
                return None
            opened = os.open(volume.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            self._handles[number] = found = Handle(opened)
            if len(self._handles) > _OPEN_AT_ONCE:
                self._handles.popitem(last=False)
            return found

    def close(self) -> None:
        """Lets go of every file."""
        with self.lock:
            self._handles.clear()
            self.indexes = ()
            self.volumes = {}
            self.fresh = {}


def _newest(one: Index) -> int:
    return max(one.about.segments, default=0)


def _among(one: Index, others: Sequence[Index]) -> bool:
    return any(one is other for other in others)
