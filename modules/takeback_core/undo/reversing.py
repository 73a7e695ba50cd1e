"""What reverses an act as it stands, or a whole undo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from takeback_core.undo import rows
from takeback_core.undo.chosen import Chosen, Subject
from takeback_core.undo.rows import Database, Row
from takeback_core.undo.runs import RunRecord, RunSubject, run_record, standing_counters

NO_WAY_BACK = "the inverse that ran recorded no way back"
_MESSAGE_IS_GONE = "the message that it came from was edited"
_REST_IS_BACK = "the rest of it was taken back since, and has to be done again first"


@dataclass(slots=True)
class _Run:
    """An undo or redo: its row, what it remembers, its acts by id, and what its inverses recorded."""

    row: Row
    record: RunRecord
    subjects: dict[str, RunSubject]
    standing: list[Row]

    @staticmethod
    def of(db: Database, row: Row) -> _Run:
        """A run by its row."""
        record = run_record(row)
        return _Run(row, record, {one.id: one for one in record.subjects}, standing_counters(db, row.id))

    def reverse(self, db: Database, act: Row) -> Chosen:
        """What gives an act back the state that this run took from it."""
        subject = self.subjects[act.id]
        if act.reason == rows.EDITED:
            return Chosen([act], stuck={act.id: _MESSAGE_IS_GONE})
        if subject.part and act.state == "undone":
            return Chosen([act], stuck={act.id: _REST_IS_BACK})
        ran = set(subject.needs) - self.record.left.keys()
        counters = [counter for counter in self.standing if counter.subject in ran]
        again = self._again(db, subject)
        if ran - {counter.subject for counter in counters} or None in again:
            return Chosen([act], stuck={act.id: NO_WAY_BACK})
        part = tuple(subject.part)
        found = [*counters, *filter(None, again)]
        if found:
            needs = frozenset(row.id for row in found)
            return Chosen(found, [Subject(act, needs, part, again=self._idle(subject, act))])
        seen = {name: v for need in subject.needs for name, v in self.record.left[need].items()}
        idle = self._idle(subject, act)
        if act.state == "undone":
            act = replace(act, stands=self._place(subject), since={})
        else:
            act = replace(act, stands=act.stands + 0.5)  # after the one redone before it, which has the place
        return Chosen([act], [Subject(act, frozenset({act.id}), part, again=idle)], left={act.id: seen})

    def _again(self, db: Database, subject: RunSubject) -> list[Row | None]:
        """The rows that the redo which this run took back had found done already, in this run's place."""
        found = [rows.one(db, row_id) for row_id in subject.again]
        return [row and replace(row, stands=self._place(subject)) for row in found]

    def _idle(self, subject: RunSubject, act: Row) -> frozenset[str]:
        """The rows that this redo had nothing to run for, since somebody else had made it so."""
        if self.record.sets != "done":
            return frozenset()
        return frozenset(need for need in subject.needs if need in self.record.left and need != act.id)

    def _place(self, subject: RunSubject) -> float:
        """Where an act for which nothing ran has its place among the counters of the others."""
        last = max(self.record.order.index(need) for need in subject.needs)
        before = set(self.record.order[:last])
        newest = max((row.seq for row in self.standing if row.subject in before), default=self.row.seq)
        return newest + (last + 1) / (len(self.record.order) + 1)


def acts(db: Database, found: Iterable[Row]) -> Chosen:
    """Those acts of many that still stand, each to be reversed from how it stands."""
    chosen, redos = Chosen(), dict[str, _Run | None]()
    chosen.add(_act(db, row, redos) for row in found if row.state not in ("undone", "abandoned"))
    return chosen


def _act(db: Database, act: Row, redos: dict[str, _Run | None]) -> Chosen:
    """An act to be reversed: what its redo did, which may have been a merge or nothing, or else the act."""
    run = act.redone_in if act.state in ("done", "failed") else None
    if run is not None and run not in redos:
        row = rows.one(db, run)
        redos[run] = None if row is None else _Run.of(db, row)
    redo = redos[run] if run is not None else None
    if redo is not None and act.id in redo.subjects:
        chosen = redo.reverse(db, act)
        if not chosen.stuck:
            return chosen
    return Chosen([act], [Subject(act, frozenset({act.id}))])


def undo_of(db: Database, undo: Row, only: set[str] | None = None) -> Chosen:
    """The reverse of an undo: its counters, newest first, for all its acts or only some."""
    run = _Run.of(db, undo)
    chosen = Chosen(sets="done" if run.record.sets == "undone" else "undone")
    if undo.state in ("undone", "abandoned"):
        chosen.already = [undo]
    elif undo.state != "done":
        chosen.rows = [undo]
    else:
        chosen.add(run.reverse(db, act) for act in _resting(db, run) if only is None or act.id in only)
    return chosen


def _resting(db: Database, run: _Run) -> Iterator[Row]:
    """The acts that have their state from an undo, and from no later one."""
    for subject in run.record.subjects:
        act = rows.one(db, subject.id)
        if act is not None and (act.rests_on(run.row.id) if subject.part else act.rests_in == run.row.id):
            yield act
