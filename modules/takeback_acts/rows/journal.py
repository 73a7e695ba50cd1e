"""Journal: acts on rows, kept with all that reverses them in the database that they change."""

from __future__ import annotations

import gc
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Generic, TypeVar

from takeback.errors import ConflictError, RefusedError
from takeback_acts.rows import codec, effects, foreseeing
from takeback_acts.rows.carrying import Carried, Carrier, broken, constraint
from takeback_acts.rows.changes import Change, Event, net
from takeback_acts.rows.dialect import Dialect, Link, Violation
from takeback_acts.rows.effects import Effect
from takeback_acts.rows.entries import Entry, Journal, Stored
from takeback_acts.rows.judging import Judge, Part, Step
from takeback_acts.rows.overlay import Overlay
from takeback_acts.rows.rules import Rules
from takeback_acts.rows.shapes import Fit, Reader, Writer
from takeback_acts.rows.tables import Catalog, Image, Key, Table, Value

T = TypeVar("T")
_SAVEPOINT = "takeback_undo"
_MANY = 200


@dataclass(frozen=True, slots=True)
class Written(Generic[T]):
    """What the caller's own code gave, and what it changed: nothing, and then there is no entry."""

    result: T
    changes: list[Change]


@dataclass(frozen=True, slots=True)
class Taken:
    """What taking back came to. Not `clean`: something stands against it, and nothing was done.

    `partial`: parts of it were not asked for, so the entries count as not taken back.
    """

    effects: list[Effect]
    changes: list[Change]
    clean: bool
    partial: bool = False


class Ledger:
    """The journal of one database. Everything runs in a transaction that the caller opened, and ends."""

    def __init__(self, dialect: Dialect, catalog: Catalog, rules: Rules | None = None) -> None:
        self.dialect = dialect
        self.rules = rules or Rules()
        self.journal = Journal(dialect)
        self._known(catalog)

    def _known(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._shapes = Writer(catalog)
        self._reader = Reader(catalog)

    def refresh(self, link: Link) -> Catalog:
        """The catalog as the schema is now."""
        catalog = self.dialect.refresh(link, self.catalog)
        if catalog is not self.catalog:
            self._known(catalog)
        return catalog

    def write(self, link: Link, entry: Entry, body: Callable[[Link], T]) -> Written[T]:
        """Runs the body, and journals what it and everything it caused changed.

        Raises what the body raises, RefusedError `rows.unjournaled`, `rows.key`, `rows.value`,
        `rows.capture`: the caller rolls back then.
        """
        catalog = self.refresh(link)
        self.dialect.arm(link, catalog, entry.id)
        result = body(link)
        changes = self._captured(link, catalog)
        if changes:
            self._add(link, entry, "act", changes, ())
        return Written(result, changes)

    def _captured(self, link: Link, catalog: Catalog) -> list[Change]:
        events: Sequence[Event] = self.dialect.collect(link, catalog)
        if self.rules.outside:
            events = [event for event in events if event.table not in self.rules.outside]
        for event in events:
            if event.table not in catalog.tables:
                catalog.table(event.table)
        changes = net(events, catalog)
        for change in changes:
            _require_key(catalog.tables[change.table], change)
        return changes

    def _add(
        self, link: Link, entry: Entry, kind: str, changes: Sequence[Change], undoes: Sequence[str]
    ) -> None:
        shapes = self._shapes.text(change.table for change in changes)
        self.journal.add(link, entry, kind, shapes, codec.encode(changes, self.catalog.tables), undoes)

    def entries(
        self,
        link: Link,
        *,
        ids: Iterable[str] | None = None,
        grp: str | None = None,
        since_seq: int | None = None,
        live: bool = True,
    ) -> list[Stored]:
        """Entries, newest first: those of the ids, whatever they are; or acts of a group, from a number on,
        by `live` only those that are not taken back."""
        if ids is not None:
            return self.journal.by_id(link, ids)
        return self.journal.since(link, grp=grp, since_seq=since_seq, live=live, kinds=("act",))

    def expire(self, link: Link, before: str) -> int:
        """Forgets entries older than an ISO time; how many."""
        return self.journal.expire(link, before)

    # -- taking back ---------------------------------------------------------------------------------------

    def take_back(
        self,
        link: Link,
        stored: Sequence[Stored],
        *,
        id: str,
        at: str,
        only: Container[Part] | None = None,
        force: bool = False,
        overlay: Overlay | None = None,
    ) -> Taken:
        """Takes entries back, all or nothing, as one entry of kind "undo" under this id.

        To take back an undo is to redo. Raises ConflictError `rows.undone` when somebody was quicker.
        """
        with _uninterrupted(len(stored)):
            taken, done = self._taken(link, stored, id, only, force, overlay)
            if not taken.clean:
                return taken
            self.dialect.release(link, _SAVEPOINT)
            done.settle()
            grp, point = (stored[0].grp, stored[0].point) if stored else ("", "")
            entry = Entry(id, at, grp, point, "undo")
            self._add(link, entry, "undo", taken.changes, [each.id for each in stored])
            if not taken.partial:
                self._mark(link, stored, id)
            return taken

    def preview(
        self,
        link: Link,
        stored: Sequence[Stored],
        *,
        only: Container[Part] | None = None,
        force: bool = False,
    ) -> Taken:
        """What `take_back` would come to, by doing it and taking it back.

        Where nothing in the database could refuse what is planned, or do more, it is not done first.
        """
        with _uninterrupted(len(stored)):
            catalog = self.refresh(link)
            overlay = Overlay(catalog.tables, self.rules)
            judge = self.judge(link, stored, overlay, only=only, force=force)
            if effects.clean(judge.effects):
                planned = overlay.planned()
                # Looked at once more: what an engine need not know of to write, it must to be sure of this.
                if foreseeing.certain(catalog, overlay, planned) and self.refresh(link) is catalog:
                    return Taken(judge.effects, planned, True, judge.partial)
            taken = self._done(link, judge, overlay, "preview")
            if taken.clean:
                self.dialect.rollback_to(link, _SAVEPOINT)
            return taken

    def _taken(
        self,
        link: Link,
        stored: Sequence[Stored],
        id: str,
        only: Container[Part] | None,
        force: bool,
        overlay: Overlay | None,
    ) -> tuple[Taken, Overlay]:
        """When it is clean, a savepoint is left open for the caller to keep or to take back."""
        catalog = self.refresh(link)
        over = overlay if overlay is not None else Overlay(catalog.tables, self.rules)
        judge = self.judge(link, stored, over, only=only, force=force)
        return self._done(link, judge, over, id), over

    def _done(self, link: Link, judge: Judge, overlay: Overlay, id: str) -> Taken:
        told = judge.effects
        if not effects.clean(told):
            return Taken(told, [], False, judge.partial)
        carried = self._carried(link, self.catalog, overlay, id)
        if carried.effects:
            told += _attributed(carried.effects, told)
        ok = effects.clean(carried.effects)
        if not ok:
            self.dialect.rollback_to(link, _SAVEPOINT)
        return Taken(told, carried.changes if ok else [], ok, judge.partial)

    def judge(
        self,
        link: Link,
        stored: Sequence[Stored],
        overlay: Overlay,
        *,
        only: Container[Part] | None = None,
        force: bool = False,
    ) -> Judge:
        """Judges entries, newest first, and notes in the overlay what they come to. Nothing is written."""
        judge = Judge(overlay, only=only, force=force)
        entries = sorted(stored, key=attrgetter("seq"), reverse=True)
        steps = self._steps(link, entries, overlay)
        for each, changed in zip(entries, steps, strict=True):
            judge.entry(each.id, changed)
        return judge

    def _steps(self, link: Link, entries: Sequence[Stored], overlay: Overlay) -> list[list[Step]]:
        """What each entry changed, with every row read that may be looked at, all of a table at once."""
        keys: dict[str, dict[Key, None]] = {}
        with codec.reading():
            made = list(self._read(link, entries, keys))
        for name, wanted in keys.items():
            if wanted:
                overlay.load(link, self.dialect, name, wanted)
        return made

    def _read(
        self, link: Link, entries: Sequence[Stored], keys: dict[str, dict[Key, None]]
    ) -> Iterator[list[Step]]:
        lines = codec.decode_all([each.text for each in entries])
        shapes, fits = "", self._reader.fits("{}")
        for each, own in zip(entries, lines, strict=True):
            if each.shapes != shapes:
                shapes = each.shapes
                fits = self._reader.fits(shapes)
                for name in fits:
                    keys.setdefault(name, {})
            yield [self._step(link, fits[line[0]], line, keys[line[0]]) for line in own]

    def _step(self, link: Link, fit: Fit, line: codec.Line, wanted: dict[Key, None]) -> Step:
        before, after = codec.images(line)
        table = fit.table
        if table is None or not fit.straight:
            return self._drifted(link, fit, before, after, wanted)
        image = before if after is None else after
        assert image is not None
        key = table.key_of(image)
        if table.folds:
            key = table.identify(key)
        wanted[key] = None
        if before is None or after is None:
            return Step(fit, before, after, key)
        places = line[2]
        if table.key_places.isdisjoint(places):
            return Step(fit, before, after, key, places)
        return Step(fit, before, after, key, places, (), _moved(table, before, key, wanted))

    def _drifted(
        self, link: Link, fit: Fit, before: Image | None, after: Image | None, wanted: dict[Key, None]
    ) -> Step:
        """A change of a table that looked otherwise then."""
        table = fit.table
        if table is None or fit.why:
            return Step(fit, before, after, fit.old_key(before if after is None else after))
        lost = tuple(fit.missed(before, after))
        before, after = self._adapted(link, fit, before), self._adapted(link, fit, after)
        image = before if after is None else after
        assert image is not None
        key = table.identify(table.key_of(image))
        wanted[key] = None
        if before is None or after is None:
            return Step(fit, before, after, key, (), lost)
        places = table.differing(before, after)
        return Step(fit, before, after, key, places, lost, _moved(table, before, key, wanted))

    def _adapted(self, link: Link, fit: Fit, image: Image | None) -> Image | None:
        def defaults(table: Table, columns: list[str]) -> tuple[Value, ...]:
            return self.dialect.defaults(link, table, columns)

        return fit.adapt(image, defaults)

    def _carried(self, link: Link, catalog: Catalog, overlay: Overlay, id: str) -> Carried:
        planned = overlay.planned()
        self.dialect.savepoint(link, _SAVEPOINT)
        carrier = Carrier(link, self.dialect, catalog, self.rules)
        done = self._tried(link, carrier, overlay, planned, id)
        if isinstance(done, Violation) and _may_be_order(done, planned):
            carrier = Carrier(link, self.dialect, catalog, self.rules, patient=True)
            done = self._tried(link, carrier, overlay, planned, id)
        if isinstance(done, Violation):
            return Carried([], [constraint(done, carrier.culprit(planned))])
        return done

    def _tried(
        self, link: Link, carrier: Carrier, overlay: Overlay, planned: Sequence[Change], id: str
    ) -> Carried | Violation:
        """What came of a plan, or the constraint that broke, and then nothing did."""
        try:
            return carrier.carry(overlay, planned, id)
        except Exception as error:
            stopped = broken(self.dialect, error)
            if stopped is None:
                raise
        self.dialect.rollback_to(link, _SAVEPOINT)
        self.dialect.savepoint(link, _SAVEPOINT)
        return stopped

    def _mark(self, link: Link, stored: Sequence[Stored], id: str) -> None:
        if self.journal.mark(link, stored, id) != len(stored):
            raise ConflictError(
                "rows.undone",
                "Some of it was taken back in the meantime, so nothing was done.",
                "Look at what is left, and try again.",
                retryable=True,
            )
        for each in stored:
            if each.kind == "undo":
                self._revive(link, each)

    def _revive(self, link: Link, undo: Stored) -> None:
        """What an undo took back is done again; and if that was an undo, what it took back is undone
        again."""
        targets = self.journal.by_id(link, undo.undoes)
        self.journal.mark(link, targets, None)
        for each in targets:
            if each.kind == "undo":
                found = self.journal.by_id(link, each.undoes)
                self.journal.mark(link, found, each.id)
                for again in found:
                    if again.kind == "undo":
                        self._revive(link, again)


@contextmanager
def _uninterrupted(entries: int) -> Iterator[None]:
    """Keeps the collector of cycles from looking, again and again, at many thousand rows that are all in
    use."""
    if entries < _MANY or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _may_be_order(broken: Violation, planned: Iterable[Change]) -> bool:
    """Whether rows of the plan itself may have been in each other's way."""
    if broken.kind not in ("unique", "exclusion"):
        return False
    updates = (
        change
        for change in planned
        if change.before is not None and change.after is not None and broken.table in ("", change.table)
    )
    return len(list(islice(updates, 2))) == 2


def _moved(table: Table, before: Image, key: Key, wanted: dict[Key, None]) -> Key | None:
    """The key that a row had before it was moved to another; wanted as well then."""
    old = table.identify(table.key_of(before))
    if old == key:
        return None
    wanted[old] = None
    return old


def _require_key(table: Table, change: Change) -> None:
    for image in (change.before, change.after):
        if image is not None and None in table.key_of(image):
            raise RefusedError(
                "rows.key",
                f"A row of {table.name} has NULL in its key, so nothing could find it again.",
                "Give it a key, or declare the key NOT NULL.",
            )


def _attributed(found: Iterable[Effect], told: Iterable[Effect]) -> list[Effect]:
    """What was found by doing, with the entry that wanted it where one did."""
    by_place = {(each.table, each.key): each.entry for each in told}
    return [each._replace(entry=by_place.get((each.table, each.key), "")) for each in found]
