"""Listing the log: filters, newest first, with a cursor that stays right while rows come in."""

from __future__ import annotations

from takeback.callers import Caller
from takeback.context import Context
from takeback.errors import UsageError
from takeback_core.undo import rows
from takeback_core.undo.actors import limits
from takeback_core.undo.models import Acts, ListActs, RecordedOn
from takeback_core.undo.selection import moment, touching


def page(db: rows.Database, ctx: Context, args: ListActs) -> Acts:
    """One page of the rows that a caller may see; raises `undo.cursor` and `undo.time`."""
    where, values = limits(ctx)
    conditions, parameters = [where, "a.role <> 'counter'"], list[object](values)
    for column, value in (("agent", args.agent), ("session", args.session), ("turn", args.turn)):
        if value is not None:
            conditions.append(f"a.{column} = ?")
            parameters.append(value)
    if args.state is not None:
        # Said twice so that SQLite takes the partial index for the rare states.
        conditions.append("a.state = ?" if args.state == "done" else "a.state = ? AND a.state <> 'done'")
        parameters.append(args.state)
    if args.since is not None:
        conditions.append("a.at >= ?")
        parameters.append(moment(args.since))
    if args.resource is not None:
        touches, names = touching(args.resource)
        conditions.append(touches)
        parameters += names
    if args.id_prefix is not None:
        # An id is hexadecimal, so that all that begin alike lie below the next letter.
        conditions.append("a.id >= ? AND a.id < ?")
        parameters += [args.id_prefix, f"{args.id_prefix}g"]
    if args.resource is None and args.state is None and args.id_prefix is None:
        # Who looks for a state, a resource or an id must also find what was recorded inside a call.
        conditions.append("a.parent IS NULL")
    return _page(db, conditions, parameters, args)


def recorded(db: rows.Database, ctx: Context, args: RecordedOn) -> Acts:
    """What the calling module recorded on a resource, undos too, newest first; an agent's own for an agent.

    Raises `undo.cursor`.
    """
    touches, names = touching(args.resource, around=True)
    conditions, parameters = [touches, "a.recorded_by = ?"], list[object]([*names, ctx.caller])
    for caller in map(Caller.parse, ctx.chain):
        if caller.kind == "agent":
            conditions.append("a.agent = ?")
            parameters.append(caller.name)
    if args.id is not None:
        conditions.append("a.id = ?")
        parameters.append(args.id)
    return _page(db, conditions, parameters, args)


def _page(
    db: rows.Database, conditions: list[str], parameters: list[object], args: ListActs | RecordedOn
) -> Acts:
    if args.cursor is not None:
        conditions.append("a.seq < ?")
        parameters.append(_seq(args.cursor))
    found = rows.many(db, " AND ".join(conditions), parameters, args.limit + 1)
    shown = found[: args.limit]
    following = str(shown[-1].seq) if len(found) > args.limit else None
    return Acts(acts=[row.act() for row in shown], next=following)


def _seq(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise UsageError("undo.cursor", "The cursor is none that a list gave", "Begin again without one.")
    return int(cursor)
