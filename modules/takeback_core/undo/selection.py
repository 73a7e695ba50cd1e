"""Selecting which rows an undo reverses, and which acts it thereby gives another state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from takeback.context import Context
from takeback.errors import UsageError
from takeback_core.undo import models, resources, rows
from takeback_core.undo.actors import limits, may_undo, unknown_act
from takeback_core.undo.rows import Database, Row
from takeback_core.undo.runs import RunRecord, RunSubject, run_record, standing_counters

_ACTOR = "coalesce(a.agent, a.actor)"


@dataclass(slots=True)
class Subject:
    """An act that changes its state once all the rows it needs have been reversed."""

    row: Row
    needs: frozenset[str]


@dataclass(slots=True)
class Chosen:
    """Rows to reverse, newest first; the acts behind them; and the state that these get.

    `already` lists acts that have the wanted state without doing anything. `still` names the rows for which
    nothing is to be run, with the reason why that can't be helped, empty where it is as it should be.
    """

    rows: list[Row] = field(default_factory=list)
    subjects: list[Subject] = field(default_factory=list)
    sets: str = "undone"
    already: list[Row] = field(default_factory=list)
    still: dict[str, str] = field(default_factory=dict)

    @property
    def seen(self) -> set[int]:
        """The seqs of the rows and of the acts behind them."""
        return {row.seq for row in self.rows} | {subject.row.seq for subject in self.subjects}

    def add(self, others: Iterable[Chosen]) -> None:
        """Take other selections in, keeping the order."""
        found = {row.seq: row for row in self.rows}
        subjects = {subject.row.seq: subject for subject in self.subjects}
        for other in others:
            found |= {row.seq: row for row in other.rows}
            subjects |= {subject.row.seq: subject for subject in other.subjects}
            self.already += other.already
            self.still |= other.still
        self.rows = sorted(found.values(), key=lambda row: (-row.stands, -row.seq))
        self.subjects = [subjects[seq] for seq in sorted(subjects, reverse=True)]


def own(db: Database, ctx: Context, row_id: str) -> Row:
    """A row that the caller may take back; raises `undo.unknown_act` for any other id."""
    row = rows.one(db, row_id)
    if row is None or row.role == "counter" or not may_undo(ctx, row):
        raise unknown_act(row_id)
    return row


def choose(db: Database, ctx: Context, args: models.Selection) -> Chosen:
    """What a preview or a rewind names; raises `undo.selection`, `undo.time` and `undo.unknown_act`."""
    filters = {args.session, args.turn, args.agent, args.since, args.resource} - {None}
    if (args.id is None) == (not filters):
        raise UsageError(
            "undo.selection",
            "Name either one act by id, or a session, turn, agent, time or resource",
            "See `takeback rewind --help`.",
        )
    if args.turn is not None and args.session is None:
        raise UsageError("undo.selection", "A turn is one of a session, so name the session too")
    redo = isinstance(args, models.Preview) and args.redo
    dependents = isinstance(args, models.Preview) and args.dependents
    if args.id is None:
        if redo or dependents:
            raise UsageError(
                "undo.selection", "Only one act by its id has a redo, or dependents to take along"
            )
        return to_rewind(db, ctx, args)
    row = own(db, ctx, args.id)
    if redo:
        return to_redo(db, row)
    chosen = to_undo(db, row)
    return with_dependents(db, ctx, chosen) if dependents else chosen


def to_undo(db: Database, row: Row) -> Chosen:
    """What undoing a row reverses: an act with its children, or an undo."""
    if row.role == "undo":
        return _undo_of(db, row)
    chosen = _acts(db, [row, *_descendants(db, row)])
    return chosen if chosen.rows else Chosen(already=[row])


def to_redo(db: Database, row: Row) -> Chosen:
    """What redoing a row reverses: the undo that took it back, or the part of it that did."""
    if row.role == "undo":
        record = run_record(row)
        return _undo_of(db, row) if record.sets == "undone" else _redo_of_redo(db, row, record)
    if row.state in ("done", "failed", "final"):
        return Chosen(already=[row], sets="done")
    undo = rows.one(db, row.undone_in) if row.state == "undone" and row.undone_in else None
    if undo is None:
        return Chosen([row], sets="done", still={row.id: "it never happened, or nobody knows whether it did"})
    return _undo_of(db, undo, {row.id, *(child.id for child in _descendants(db, row))})


def to_rewind(db: Database, ctx: Context, args: models.Selection) -> Chosen:
    """The live acts of a session, a turn and all after it, an agent, on a resource, since a time."""
    where, values = limits(ctx)
    conditions, parameters = [where, "a.role = 'act'"], list[object](values)
    for column, value in (("session", args.session), ("agent", args.agent)):
        if value is not None:
            conditions.append(f"a.{column} = ?")
            parameters.append(value)
    if args.turn is not None:
        condition, more = _from_turn(db, conditions, parameters, args.turn)
        conditions.append(condition)
        parameters += more
    if args.resource is not None:
        touches, names = touching(args.resource, around=True)
        conditions.append(touches)
        parameters += names
    if args.since is not None:
        conditions.append("a.at >= ?")
        parameters.append(moment(args.since))
    # A child may stand although its parent does not: redone alone, or left by a call that failed.
    found = rows.many(db, " AND ".join(conditions), parameters)
    below = [child for row in found if row.has_children for child in _descendants(db, row)]
    return _acts(db, [*found, *below])


def with_dependents(db: Database, ctx: Context, chosen: Chosen) -> Chosen:
    """The selection and every later live act that rests on it, as far as the caller may undo those."""
    seen = chosen.seen
    waiting = list(chosen.rows)
    while waiting:
        row = waiting.pop()
        for item in row.touched:
            while found := rows.later(db, item.resource, row.stands, seen):
                mine = [one for one in found if may_undo(ctx, one)]
                more = _acts(db, [each for one in mine for each in (one, *_descendants(db, one))])
                waiting += [inner for inner in more.rows if inner.seq not in seen]
                seen |= more.seen | {one.seq for one in found}
                chosen.add([more])
    return chosen


def touching(resource: str, *, around: bool = False) -> tuple[str, list[object]]:
    """The SQL for acts that touched a resource, what lies in it or, `around`, all of a folder around it."""
    low, high = resources.beneath(resource)
    names = [resource, *(resources.trees_around(resource) if around else ())]
    marks = ", ".join("?" * len(names))
    sql = (
        f"a.seq IN (SELECT act FROM undo_touched WHERE resource IN ({marks}) UNION"
        " SELECT act FROM undo_touched WHERE resource >= ? AND resource < ?)"
    )
    return sql, [*names, low, high]


def moment(text: str) -> str:
    """A time given by a caller as the log writes it; raises `undo.time` when it is none."""
    try:
        parsed = datetime.fromisoformat(text)
        return rows.iso(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise UsageError(
            "undo.time", f"{text[:40]!r} is not an ISO 8601 time", "Give for example 2026-11-30T09:00:00Z."
        ) from None


def _from_turn(
    db: Database, conditions: list[str], parameters: list[object], turn: str
) -> tuple[str, list[object]]:
    """Everything from each actor's own first act of a turn on.

    A session and a turn are the agent's own word: one that borrows another's moves nobody's turn but its own.
    """
    where = " AND ".join([*conditions, "a.turn = ?"])
    sql = f"SELECT {_ACTOR}, min(a.seq) FROM undo_acted a WHERE {where} GROUP BY {_ACTOR}"
    first = [tuple(found) for found in db.execute(sql, [*parameters, turn])]
    each = " OR ".join([f"({_ACTOR} = ? AND a.seq >= ?)"] * len(first)) or "0"
    return f"({each})", [value for pair in first for value in pair]


def _acts(db: Database, found: Iterable[Row]) -> Chosen:
    """Those acts of many that still stand, each to be reversed from how it stands."""
    chosen, redos = Chosen(), dict[str, _Redo | None]()
    chosen.add(_act(db, row, redos) for row in found if row.state not in ("undone", "abandoned"))
    return chosen


def _act(db: Database, row: Row, redos: dict[str, _Redo | None]) -> Chosen:
    """An act to be reversed: what its redo did, which may have been a merge or nothing, or else the act."""
    run = row.redone_in if row.state in ("done", "failed") else None
    if run is not None:
        if run not in redos:
            redos[run] = _redo(db, run)
        redo = redos[run]
        if redo is not None and (subject := redo.subjects.get(row.id)):
            again = _again(subject, row, redo.standing, redo.record)
            if not again.still.get(row.id):
                return again
    return Chosen([row], [Subject(row, frozenset({row.id}))])


@dataclass(slots=True)
class _Redo:
    """A redo: what it remembers, its acts by id, and what its inverses recorded."""

    record: RunRecord
    subjects: dict[str, RunSubject]
    standing: list[Row]


def _redo(db: Database, run_id: str) -> _Redo | None:
    row = rows.one(db, run_id)
    if row is None:
        return None
    record = run_record(row)
    return _Redo(record, {one.id: one for one in record.subjects}, standing_counters(db, run_id))


def _descendants(db: Database, row: Row) -> list[Row]:
    if not row.has_children:
        return []
    found: list[Row] = []
    for child in rows.children(db, row.id):
        if child.role == "act":
            found += [child, *_descendants(db, child)]
    return found


def _undo_of(db: Database, undo: Row, only: set[str] | None = None) -> Chosen:
    """The reverse of an undo: its counters, newest first, for all its acts or only some."""
    record = run_record(undo)
    chosen = Chosen(sets="done" if record.sets == "undone" else "undone")
    if undo.state in ("undone", "abandoned"):
        chosen.already = [undo]
    elif undo.state != "done":
        chosen.rows = [undo]
    else:
        standing = standing_counters(db, undo.id)
        chosen.add(_again(one, row, standing, record) for one, row in _resting(db, undo.id, record, only))
    return chosen


def _again(subject: RunSubject, row: Row, standing: list[Row], record: RunRecord) -> Chosen:
    """What gives an act the state back that an undo took from it."""
    ran = {need for need in subject.needs if need in record.steps}
    counters = [counter for counter in standing if counter.subject in ran]
    if ran - {counter.subject for counter in counters}:
        return Chosen([row], still={row.id: "the inverse that ran recorded no way back"})
    if not counters:
        return Chosen([row], [Subject(row, frozenset({row.id}))], still={row.id: ""})
    return Chosen(counters, [Subject(row, frozenset(counter.id for counter in counters))])


def _resting(
    db: Database, run_id: str, record: RunRecord, only: set[str] | None = None
) -> Iterator[tuple[RunSubject, Row]]:
    """The acts that have their state from an undo, and from no later one."""
    for subject in record.subjects:
        row = rows.one(db, subject.id)
        if row is not None and row.rests_in == run_id and (only is None or row.id in only):
            yield subject, row


def _redo_of_redo(db: Database, redo: Row, record: RunRecord) -> Chosen:
    """What was taken back again of that which a redo had brought back."""
    chosen = Chosen(sets="done")
    held = [row for subject in record.subjects if (row := rows.one(db, subject.id))]
    chosen.add(to_redo(db, row) for row in held if row.state == "undone")
    if not chosen.rows:
        chosen.already = [redo]
    return chosen
