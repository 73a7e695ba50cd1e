"""Selecting which rows an undo reverses, and which acts it thereby gives another state."""

from __future__ import annotations

from collections.abc import Sequence

from takeback import moments
from takeback.context import Context
from takeback.errors import NotFoundError, UsageError
from takeback_core.undo import models, resources, rows
from takeback_core.undo.actors import limits, may_undo, unknown_act
from takeback_core.undo.chosen import Chosen, is_named
from takeback_core.undo.reversing import acts, undo_of
from takeback_core.undo.rows import Database, Row
from takeback_core.undo.runs import RunRecord, run_record

_ACTOR = "coalesce(a.agent, a.actor)"


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
    only = args.only if isinstance(args, models.Preview) else []
    if args.id is None:
        if redo or dependents or only:
            raise UsageError(
                "undo.selection", "Only one act by its id has a redo, parts, or dependents to take along"
            )
        return to_rewind(db, ctx, args)
    row = own(db, ctx, args.id)
    if redo:
        return to_redo(db, row)
    return to_run(db, ctx, row, only=only, dependents=dependents)


def to_run(db: Database, ctx: Context, row: Row, *, only: Sequence[str], dependents: bool) -> Chosen:
    """What undoing a row reverses, or these parts of it; raises NotFoundError `undo.no_part`."""
    chosen = to_undo(db, row)
    if only:
        _require_parts(db, row, only)
        chosen.narrow(only)
        if not chosen.rows:
            chosen.already = [row]
    return with_dependents(db, ctx, chosen) if dependents else chosen


def to_undo(db: Database, row: Row) -> Chosen:
    """What undoing a row reverses: an act with its children, or an undo."""
    if row.role == "undo":
        return undo_of(db, row)
    chosen = acts(db, [row, *_descendants(db, row)])
    return chosen if chosen.rows else Chosen(already=[row])


def to_redo(db: Database, row: Row) -> Chosen:
    """What redoing a row reverses: the undo that took it back, or the part of it that did.

    Of an act that stands it is the undos that took back a part of it.
    """
    if row.role == "undo":
        record = run_record(row)
        return undo_of(db, row) if record.sets == "undone" else _redo_of_redo(db, row, record)
    if row.state in ("done", "failed", "final"):
        return _redo_of_parts(db, row)
    undo = rows.one(db, row.undone_in) if row.state == "undone" and row.undone_in else None
    if undo is None:
        return Chosen([row], sets="done", stuck={row.id: "it never happened, or nobody knows whether it did"})
    return undo_of(db, undo, {row.id, *(child.id for child in _descendants(db, row))})


def to_rewind(db: Database, ctx: Context, args: models.Selection) -> Chosen:
    """The live acts of a session, a turn and all after it, an agent, on a resource, since a time."""
    where, values = limits(ctx)
    conditions = [where, f"a.role = 'act' AND a.reason IS NOT '{rows.EDITED}'"]
    parameters = list[object](values)
    for column, value in (("session", args.session), (_actor_column(args.agent), args.agent)):
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
    return acts(db, [*found, *below])


def with_dependents(db: Database, ctx: Context, chosen: Chosen) -> Chosen:
    """The selection and every later live act that rests on it, as far as the caller may undo those."""
    seen = chosen.seen
    waiting, acts_of = list(chosen.rows), chosen.acts()
    while waiting:
        row = waiting.pop()
        act = acts_of.get(row.id, row)
        for item in chosen.asked(row, act):
            since = row.stands_since(item.resource), act.seq
            while found := rows.later(db, item.resource, since, seen):
                mine = [one for one in found if may_undo(ctx, one)]
                more = acts(db, [each for one in mine for each in (one, *_descendants(db, one))])
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
        return moments.stamp(moments.parse(text))
    except (ValueError, OverflowError):
        raise UsageError(
            "undo.time", f"{text[:40]!r} is not an ISO 8601 time", "Give for example 2026-11-30T09:00:00Z."
        ) from None


def _actor_column(agent: str | None) -> str:
    """What an agent is found by: its name, or the whole label of one who acts without being an agent."""
    return "actor" if agent is not None and ":" in agent else "agent"


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


def _descendants(db: Database, row: Row) -> list[Row]:
    if not row.has_children:
        return []
    found: list[Row] = []
    for child in rows.children(db, row.id):
        if child.role == "act":
            found += [child, *_descendants(db, child)]
    return found


def _redo_of_redo(db: Database, redo: Row, record: RunRecord) -> Chosen:
    """What was taken back again of that which a redo had brought back."""
    chosen = Chosen(sets="done")
    for subject in record.subjects:
        row = rows.one(db, subject.id)
        if row is not None and (row.state == "undone" or (subject.part and row.taken)):
            chosen.add([to_redo(db, row)])
    if not chosen.rows:
        chosen.already = [redo]
    return chosen


def _redo_of_parts(db: Database, row: Row) -> Chosen:
    """What was taken back of an act that stands."""
    chosen = Chosen(sets="done")
    undos = [rows.one(db, run) for run in set(row.taken.values())]
    chosen.add(undo_of(db, undo, {row.id}) for undo in undos if undo is not None and undo.state == "done")
    if not chosen.rows:
        chosen.already = [row]
    return chosen


def _require_parts(db: Database, row: Row, only: Sequence[str]) -> None:
    touched = [item.resource for one in (row, *_descendants(db, row)) for item in one.touched]
    for name in only:
        if not any(is_named(resource, [name]) for resource in touched):
            raise NotFoundError(
                "undo.no_part",
                f"The act touched nothing at {name:.500}",
                "Its plan names what it touched; a folder that came or went as a whole has no parts.",
            )
