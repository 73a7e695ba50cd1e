"""Runs: what the row of an undo remembers, and how an undo ends."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pydantic import BaseModel, Field

from takeback import moments
from takeback.errors import TakebackError
from takeback.store import Transaction
from takeback_core.undo import parts, rows
from takeback_core.undo.happenings import UndoDone, UndoFailed
from takeback_core.undo.models import Plan, Touched
from takeback_core.undo.rows import Database, Row

_FREE: dict[str, Any] = {"lease_owner": None, "lease_until": None}


class RunSubject(BaseModel):
    """An act that an undo is to give another state, the state it had, and the rows it needs reversed.

    With `part` it keeps its state, for only these of its resources are taken back or brought again. `again`
    are rows whose inverses had nothing to do in the redo that was taken back, and may have in the next.
    """

    id: str
    was: str
    needs: list[str]
    part: list[str] = Field(default_factory=list)
    again: list[str] = Field(default_factory=list)


class Past(BaseModel):
    """The past that a rewind ends: of a session, an agent's, from a turn on; and its key.

    `asker` is the module that asked for it with that key and has more to change in the end.
    """

    session: str
    turn: str | None
    agent: str | None
    key: str | None
    asker: str | None = None


class RunRecord(BaseModel):
    """What the row of an undo remembers: enough to finish it or to take it back after a crash.

    `order` holds the rows that are reversed, first one first, and `left` those among them for which nothing
    had to run, with the versions they were found with. `parts` says of which rows only some resources are
    reversed, `rewound` which session's past it ends. `started` and `predicted` are the versions before and
    after all of it. With a key also what was asked, and the plan to answer again.
    """

    order: list[str]
    left: dict[str, dict[str, str]]
    subjects: list[RunSubject]
    sets: str
    started: dict[str, str]
    predicted: dict[str, str]
    parts: dict[str, list[str]] = Field(default_factory=dict)
    rewound: Past | None = None
    asked: str | None = None
    plan: Plan | None = None

    @property
    def steps(self) -> list[str]:
        """The rows whose inverses run."""
        return [row_id for row_id in self.order if row_id not in self.left]

    def reversed(self, row: Row) -> list[Touched]:
        """What of a row is reversed."""
        only = self.parts.get(row.id)
        return [item for item in row.touched if only is None or item.resource in only]


def run_record(row: Row) -> RunRecord:
    """The record in the row of an undo."""
    return RunRecord.model_validate_json(row.input)


def standing_counters(db: Database, run_id: str) -> list[Row]:
    """What an undo's inverses recorded and nobody has put back, newest first."""
    counters = [row for row in rows.children(db, run_id) if row.role == "counter"]
    inner = {row.id for row in counters}
    # A crash may have come between putting a counter back and marking it so.
    back = {row.subject for row in counters if row.state == "done"}
    standing = [row for row in counters if row.state == "done" and row.id not in back]
    return [row for row in standing if row.subject not in inner]


def note_put_back(tx: Transaction, run_id: str, counters: list[Row], *, ended: bool = False) -> list[Row]:
    """Note that counters of an undo were put back; answers those of which it is not known, as they wait.

    Until a joint has `ended` those wait whose own counters are pending, and after it none counts as put
    back without one.
    """
    inner: dict[str | None, str] = {}
    for row in reversed(rows.children(tx, run_id)):
        inner[row.subject] = row.state
    if ended:
        known = [row for row in counters if inner.get(row.id) == "done"]
    else:
        known = [row for row in counters if inner.get(row.id) != "pending"]
    for row in known:
        rows.update(tx, row.id, state="undone")
    return [row for row in counters if row not in known]


def finish(tx: Transaction, run_id: str, record: RunRecord, by: str, reason: str | None = None) -> None:
    """Give the acts of an undo their new state, and say so."""
    undone = record.sets == "undone"
    earlier: set[str] = set()
    counters = [] if undone else standing_counters(tx, run_id)
    since = {} if undone else _since(tx, run_id, record, counters)
    for subject in record.subjects:
        row = rows.one(tx, subject.id)
        if row is not None:
            earlier |= _rested_in(row)
            stands = 0 if undone else max(since[need] for need in subject.needs)
            if subject.part:
                part = subject.part if undone else _brought(subject, counters)
                changes = _end_part(tx, row, part, run_id, stands) | {"state": subject.was}
            else:
                changes = _end(tx, row, run_id, stands, by)
                if stands:
                    rows.stand_again(tx, row, stands, but=_not_so(row, record))
            rows.update(tx, row.id, **changes, error=None, **_FREE)
            tx.emit(UndoDone(id=row.id))
    rows.update(tx, run_id, state="done", reason=reason, **_FREE)
    for run in earlier - {run_id}:
        _supersede(tx, run, run_id, by)


def _rested_in(row: Row) -> set[str]:
    """The undos and redos that a row had its state from, and those of its parts."""
    named = (row.undone_in, row.redone_in, *row.taken.values(), *row.given.values())
    return {run for run in named if run is not None}


def _end(tx: Transaction, row: Row, run_id: str, stands: int, by: str) -> dict[str, Any]:
    """The new state of an act: undone or, since some row, done again."""
    parts.join(tx, row.seq)
    return {
        "state": "done" if stands else "undone",
        "undone_at": None if stands else moments.stamp(),
        "undone_by": None if stands else by,
        "undone_in": None if stands else run_id,
        "redone_in": run_id if stands else None,
    }


def _end_part(tx: Transaction, row: Row, part: list[str], run_id: str, stands: int) -> dict[str, Any]:
    """What else changes in an act of which a part was taken back or brought again."""
    if not stands:
        parts.take(tx, row.seq, part, run_id)
        return {}
    parts.give(tx, row.seq, part, run_id, stands)
    taken = [rows.one(tx, row.taken[name]) for name in part if name in row.taken]
    redo = rows.one(tx, row.redone_in) if row.redone_in else None
    # What redid the rest later knows nothing of this part; the act's own inverse knows of both.
    apart = redo is not None and any(one is not None and one.seq < redo.seq for one in taken)
    return {"redone_in": None} if apart else {}


def _brought(subject: RunSubject, counters: list[Row]) -> list[str]:
    """What of a part was really done again; what was so already, by whatever hand, is none of the act's."""
    covered = {item.resource for row in counters if row.subject in subject.needs for item in row.touched}
    return [name for name in subject.part if name in covered]


def _since(tx: Transaction, run_id: str, record: RunRecord, counters: list[Row]) -> dict[str, int]:
    """From where on each reversed row's act stands: what its inverse recorded, or the one before it did."""
    run = rows.one(tx, run_id)
    assert run is not None
    own = {row.subject: row.seq for row in reversed(counters)}
    last, since = run.seq, dict[str, int]()
    for row_id in record.order:
        last = since[row_id] = own.get(row_id, last)
    return since


def _not_so(row: Row, record: RunRecord) -> set[str]:
    """Of an act for which nothing ran, what is not as it left it: there it stands where it stood."""
    found = record.left.get(row.id, {})
    return {item.resource for item in row.touched if found.get(item.resource, item.after) != item.after}


def release(
    tx: Transaction,
    run_id: str,
    record: RunRecord,
    failing: Row | None,
    error: TakebackError | None,
    *,
    stands: Collection[str | None] = (),
    reason: str | None = None,
) -> None:
    """Let the acts of an undo that did not happen go: as they were, the failing one with its error.

    `stands` names the rows whose reversal could not be put back: their acts are `unknown`.
    """
    text = None if error is None else rows.error_text(error.as_dict())
    failed = None if failing is None or error is None else _subject_of(record, failing)
    for subject in record.subjects:
        hidden = any(need in stands for need in subject.needs)
        changes: dict[str, Any] = {"state": "unknown" if hidden else subject.was, **_FREE}
        if hidden or not subject.part:
            changes["undone_in" if record.sets == "undone" else "redone_in"] = run_id if hidden else None
        if subject.id == failed:
            changes["error"] = text
            if changes["state"] == "done":
                changes["state"] = "failed"
            tx.emit(UndoFailed(id=subject.id))
        rows.update(tx, subject.id, **changes)
    state = "unknown" if stands else "abandoned"
    rows.update(tx, run_id, state=state, error=text, reason=reason, run_key=None, **_FREE)


def _supersede(tx: Transaction, earlier: str, run_id: str, by: str) -> None:
    """An undo or redo of which no act has its state any more is itself undone."""
    row = rows.one(tx, earlier)
    if row is None or row.state != "done":
        return
    held = [rows.one(tx, subject.id) for subject in run_record(row).subjects]
    if not any(one is not None and one.rests_on(earlier) for one in held):
        rows.update(tx, earlier, state="undone", undone_at=moments.stamp(), undone_by=by, undone_in=run_id)


def _subject_of(record: RunRecord, failing: Row) -> str | None:
    """The act to blame: the one whose own row failed, else the first that needed it."""
    names = [subject.id for subject in record.subjects if failing.id in subject.needs]
    return failing.id if failing.id in names else (names[0] if names else None)
