"""The appender: one thread that writes what all others hand it, many blobs to one sync."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from takeback import faults
from takeback_acts.files.packs import failures, record, sealing
from takeback_acts.files.packs.catalog import Catalog, Volume
from takeback_acts.files.packs.index import Entry
from takeback_acts.files.packs.parcel import Parcel, Pending, Wanted
from takeback_acts.files.packs.segment import Segment
from takeback_acts.files.packs.settings import PackSettings

_AT_ONCE = 4 << 20
_MOST_OWNERS = 1 << 16


class Appender:
    """Owns the open segment. Only its thread touches that; `hand` and `close` are for any thread."""

    def __init__(self, catalog: Catalog, settings: PackSettings, sealed: Callable[[], None]) -> None:
        self.pending: dict[bytes, Pending] = {}
        self._catalog = catalog
        self._settings = settings
        self._sealed = sealed
        self._queue: SimpleQueue[Parcel | Callable[[], None] | None] = SimpleQueue()
        self._segment: Segment | None = None
        self._owners: dict[str, int] = {}
        self._count = 0
        self._durable = 0  # the length up to which the segment is synced
        self._checkpoint = 0
        self._spoiled = False
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._written: list[tuple[Parcel, list[bytes]]] = []
        self._ending = threading.Lock()
        self._ended = False
        self._thread = threading.Thread(target=self._work, name="takeback-packs", daemon=True)

    def start(self, resumed: Segment | None) -> None:
        """Begins, with a segment to go on with where there is one."""
        if resumed is not None:
            volume = self._catalog.volumes[resumed.number]
            self._take(resumed, {owner: number for number, owner in enumerate(volume.owners)})
            self._count = len(self._catalog.fresh)
            self._checkpoint = resumed.size
        self._thread.start()

    def hand(self, parcel: Parcel) -> None:
        """Queues a parcel; those of one thread are written in their order. Raises `blobs.closed`."""
        self._put(parcel)

    def roll(self) -> None:
        """Seals the open segment and waits for it; raises OSError, TakebackError."""
        parcel = Parcel([], now=True)

        def work() -> None:
            parcel.settle(self._tried(self._seal) if self._count else None)

        self._put(work)
        parcel.wait()

    def close(self) -> None:
        """Writes all that was handed over, leaves a checkpoint, and ends the thread."""
        with self._ending:
            self._ended = True
            self._queue.put(None)
        self._thread.join()

    def _put(self, one: Parcel | Callable[[], None]) -> None:
        with self._ending:
            if self._ended:
                raise failures.closed()
            self._queue.put(one)

    def _work(self) -> None:
        going = True
        while going:
            batch = [self._queue.get()]
            while True:
                try:
                    batch.append(self._queue.get_nowait())
                except Empty:
                    break
            going = None not in batch
            self._do([one for one in batch if one is not None])
        self._tried(self._leave)

    def _do(self, batch: list[Parcel | Callable[[], None]]) -> None:
        now = False
        for one in batch:
            if isinstance(one, Parcel):
                now |= one.now
                self._tried(lambda parcel=one: self._write(parcel))  # type: ignore[misc]
            else:
                one()
        if now:
            self._tried(self._sync)

    def _tried(self, work: Callable[[], None]) -> BaseException | None:
        """Fails every parcel that is not durable when something goes wrong; nobody else's is touched."""
        try:
            work()
        except BaseException as error:
            self._fail(_typed(self._catalog, error))
            return _typed(self._catalog, error)
        return None

    def _write(self, parcel: Parcel) -> None:
        entries: list[bytes] = []
        self._written.append((parcel, entries))
        for wanted in parcel.wanted:
            open_segment = self._room(wanted)
            entries.append(self._entry(open_segment, wanted))
            data = record.encode(wanted.head, wanted.payload, open_segment.seed)
            self._buffer.append(data)
            self._buffered += len(data)
            self._count += 1
            if self._buffered >= _AT_ONCE:
                self._flush()
        parcel.wanted = []

    def _entry(self, open_segment: Segment, wanted: Wanted) -> bytes:
        head, at = wanted.head, open_segment.size + self._buffered
        owner = self._owners.get(wanted.owner)
        if owner is None:
            owner = self._owners[wanted.owner] = len(self._owners)
            self._catalog.volumes[open_segment.number].owners.append(wanted.owner)
        entry = Entry(
            head.digest,
            open_segment.number,
            self._count,
            at,
            head.stored,
            head.length,
            head.at,
            owner,
            head.flags,
        )
        return entry.pack()

    def _room(self, wanted: Wanted) -> Segment:
        """The open segment, or a new one where that is full."""
        if self._segment is not None:
            size = self._segment.size + self._buffered + wanted.head.size
            full = size > self._settings.segment or self._count >= self._settings.records
            many = len(self._owners) >= _MOST_OWNERS
            if self._spoiled or (self._count and (full or many)):
                self._seal()
            elif self._durable - self._checkpoint > self._settings.segment // 4:
                self._note()
        if self._segment is None:
            number = self._catalog.number()
            made = Segment.create(self._catalog.folder, number)
            volume = Volume(self._catalog.folder, number, made.size)
            with self._catalog.lock:
                self._catalog.volumes[number] = volume
                self._catalog.open_number = number
            self._catalog.usage.resize(made.size)
            self._take(made, {})
        assert self._segment is not None
        return self._segment

    def _take(self, taken: Segment, owners: dict[str, int]) -> None:
        self._segment, self._owners, self._count = taken, owners, 0
        self._durable = self._checkpoint = taken.size
        self._spoiled = False

    def _flush(self) -> None:
        if self._buffer and self._segment is not None:
            data = self._buffer[0] if len(self._buffer) == 1 else b"".join(self._buffer)
            self._buffer, self._buffered = [], 0
            self._segment.append(data)

    def _sync(self) -> None:
        """Makes all that was written durable, and only then known."""
        self._flush()
        if self._segment is not None and self._segment.size > self._durable:
            self._segment.sync()
            self._durable = self._segment.size
        written, self._written = self._written, []
        with self._catalog.lock:
            if self._segment is not None:
                self._catalog.volumes[self._segment.number].size = self._durable
            for _, entries in written:
                for packed in entries:
                    self._catalog.fresh[packed[:32]] = packed
                    self.pending.pop(packed[:32], None)
        for parcel, _ in written:
            parcel.settle()

    def _seal(self) -> None:
        """Ends the segment: its index is durable before the next one is begun."""
        self._publish_part()
        if self._segment is None:
            return
        volume = self._catalog.volumes[self._segment.number]
        self._spoiled = True  # once the index may say that it is sealed, nothing must come behind
        self._index(volume, sealed=True)
        faults.point("packs.sealed")
        one = sealing.opened(volume)
        with self._catalog.lock:
            volume.count = one.about.count
            self._catalog.add_indexes([one])
            self._catalog.fresh = {}
            self._catalog.open_number = 0
        self._segment.close()
        self._segment = None
        self._sealed()

    def _publish_part(self) -> None:
        """Syncs what was written so far, of a parcel that goes on in the next segment too."""
        going = self._written.pop() if self._written and self._written[-1][0].wanted else None
        if going is None:
            self._sync()
            return
        parcel, entries = going
        self._written.append((Parcel([], now=False), list(entries)))
        try:
            self._sync()
        finally:
            entries.clear()
            self._written.append((parcel, entries))

    def _note(self) -> None:
        """A checkpoint: a start after a crash reads only what comes behind it."""
        assert self._segment is not None
        self._index(self._catalog.volumes[self._segment.number], sealed=False)
        self._checkpoint = self._durable

    def _index(self, volume: Volume, *, sealed: bool) -> None:
        assert self._segment is not None
        entries = self._catalog.fresh.values()
        sealing.write_index(volume, self._segment.seed, self._durable, entries, sealed=sealed)

    def _leave(self) -> None:
        self._sync()
        if self._segment is not None:
            if self._durable > self._checkpoint:
                self._note()
            self._segment.close()
            self._segment = None

    def _fail(self, error: BaseException) -> None:
        """Takes back what isn't durable, on disk and in memory, and tells whoever waits for it."""
        self._buffer, self._buffered = [], 0
        if self._segment is not None and self._segment.size > self._durable:
            try:
                self._segment.cut(self._durable)
            except OSError:
                self._spoiled = True  # its index will say where it ends
                self._segment.size = self._durable
        written, self._written = self._written, []
        failed = {id(parcel) for parcel, _ in written}
        with self._catalog.lock:
            lost = [digest for digest, one in self.pending.items() if id(one.parcel) in failed]
            for digest in lost:
                _, owner, size = self.pending.pop(digest)
                self._catalog.usage.give_back(owner, size)
        for parcel, _ in written:
            parcel.settle(error)


def _typed(catalog: Catalog, error: BaseException) -> BaseException:
    return failures.failure(catalog.folder, error) if isinstance(error, OSError) else error
