"""Selecting which rows an undo reverses, and which acts it thereby gives another state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from takeback.context import Context
from takeback.errors import UsageError
from takeback_core.undo import models, rows
from takeback_core.undo.actors import limits, may_undo, unknown_act
from takeback_core.undo.rows import Database, Row


@dataclass(slots=True)
class Subject:
    """An act that changes its state once all the rows it needs have been reversed."""

    row: Row
    needs: frozenset[str]


@dataclass(slots=True)
class Chosen:
    """Rows to reverse, newest first; the acts behind them; and the state that these get.

    `already` lists acts that have the wanted state without doing anything. `undoes` is the undo that a redo
    reverses.
    """

    rows: list[Row] = field(default_factory=list)
    subjects: list[Subject] = field(default_factory=list)
    sets: str = "undone"
    already: list[Row] = field(default_factory=list)
    undoes: Row | None = None

    def add(self, other: Chosen) -> None:
        """Take another selection in, keeping the order."""
        known = {row.seq for row in self.rows}
        self.rows = sorted(
            [*self.rows, *(row for row in other.rows if row.seq not in known)], key=lambda row: -row.seq
        )
        held = {subject.row.seq for subject in self.subjects}
        self.subjects += [subject for subject in other.subjects if subject.row.seq not in held]
        self.already += other.already


def own(db: Database, ctx: Context, row_id: str) -> Row:
    """A row that the caller may take back; raises `undo.unknown_act` for any other id."""
    row = rows.one(db, row_id)
    if row is None or row.role == "counter" or not may_undo(ctx, row):
        raise unknown_act(row_id)
    return row


def to_undo(db: Database, row: Row) -> Chosen:
    """What undoing a row reverses: an act with its children, or an undo."""
    if row.role == "undo":
        return _undo_of(db, row, None)
    if row.state == "undone":
        return Chosen(already=[row])
    return _act(db, row)


def to_redo(db: Database, row: Row) -> Chosen:
    """What redoing a row reverses: the undo that took it back, or the part of it that did."""
    if row.role == "undo":
        return _undo_of(db, row, None)
    if row.state != "undone" or row.undone_in is None:
        return Chosen(already=[row], sets="done")
    undo = rows.one(db, row.undone_in)
    assert undo is not None, "an undone act names the undo that took it back"
    return _undo_of(db, undo, {row.id, *(child.id for child in _descendants(db, row))})


def to_rewind(db: Database, ctx: Context, args: models.Selection) -> Chosen:
    """The live acts of a session, a turn and all after it, an agent, or since a time, newest first."""
    where, values = limits(ctx)
    conditions, parameters = [where, "a.role = 'act'", "a.parent IS NULL"], list[object](values)
    for column, value in (("session", args.session), ("agent", args.agent)):
        if value is not None:
            conditions.append(f"a.{column} = ?")
            parameters.append(value)
    if args.turn is not None:
        conditions.append(f"a.seq >= {_first(db, conditions, parameters, 'a.turn = ?', args.turn)}")
    if args.since is not None:
        conditions.append(f"a.seq >= {_first(db, conditions, parameters, 'a.at >= ?', moment(args.since))}")
    conditions.append("a.state NOT IN ('undone', 'abandoned')")
    chosen = Chosen()
    for row in rows.many(db, " AND ".join(conditions), parameters):
        chosen.add(_act(db, row))
    return chosen


def with_dependents(db: Database, ctx: Context, chosen: Chosen) -> Chosen:
    """The selection and every later live act that rests on it, as far as the caller may undo those."""
    waiting = list(chosen.rows)
    while waiting:
        row = waiting.pop()
        for item in row.touched:
            for other in rows.later(db, item.resource, row.seq):
                if may_undo(ctx, other) and other.seq not in {known.seq for known in chosen.rows}:
                    more = _act(db, other)
                    chosen.add(more)
                    waiting += more.rows
    return chosen


def moment(text: str) -> str:
    """A time given by a caller as the log writes it; raises `undo.time` when it is none."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            "undo.time", f"{text[:40]!r} is not an ISO 8601 time", "Give for example 2026-11-30T09:00:00Z."
        ) from None
    return rows.iso(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))


def _first(db: Database, conditions: list[str], parameters: list[object], extra: str, value: str) -> int:
    where = " AND ".join([*conditions, extra])
    sql = f"SELECT min(a.seq) FROM undo_acted a WHERE {where}"
    found = db.execute(sql, [*parameters, value]).fetchone()[0]
    return int(found) if found is not None else 1 << 62


def _act(db: Database, row: Row) -> Chosen:
    """An act with everything recorded inside its call that still stands."""
    below = _descendants(db, row)
    standing = [one for one in (row, *below) if one.state not in ("undone", "abandoned")]
    reversible = [one for one in standing if one.inverse_tool is not None or not one.has_children]
    subjects = []
    for one in standing:
        inside = {one.id, *(child.id for child in _descendants(db, one))}
        subjects.append(Subject(one, frozenset(r.id for r in reversible if r.id in inside)))
    return Chosen(sorted(reversible, key=lambda r: -r.seq), subjects)


def _descendants(db: Database, row: Row) -> list[Row]:
    if not row.has_children:
        return []
    found: list[Row] = []
    for child in rows.children(db, row.id):
        if child.role == "act":
            found += [child, *_descendants(db, child)]
    return found


def _undo_of(db: Database, undo: Row, only: set[str] | None) -> Chosen:
    """The reverse of an undo: its counters, newest first, for all its acts or only some."""
    record = rows.run_record(undo)
    sets = "done" if record.sets == "undone" else "undone"
    if undo.state != "done":
        return Chosen(already=[undo], sets=sets)
    counters = [row for row in rows.children(db, undo.id) if row.role == "counter" and row.state == "done"]
    inner = {row.id for row in counters}
    counters = [row for row in counters if row.subject not in inner]
    chosen = Chosen(sets=sets, undoes=undo)
    for subject in record.subjects:
        row = rows.one(db, subject.id)
        if row is None or (only is not None and row.id not in only):
            continue
        if (row.state != record.sets) or (record.sets == "undone" and row.undone_in != undo.id):
            continue
        needed = [counter for counter in counters if counter.subject in subject.needs]
        chosen.add(Chosen(needed, [Subject(row, frozenset(counter.id for counter in needed))]))
    return chosen


Choose = Callable[[Database], Chosen]
