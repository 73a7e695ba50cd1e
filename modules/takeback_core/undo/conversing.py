"""Conversing: the sessions and turns that acts of the log belong to, for who keeps their messages."""

from __future__ import annotations

from takeback.context import Context
from takeback_core.undo import rows
from takeback_core.undo.actors import limits
from takeback_core.undo.rows import Database
from takeback_core.undo.session_models import (
    SessionActed,
    SessionsActed,
    SessionsOf,
    TurnActed,
    TurnsActed,
    TurnsOf,
)

_WHO = "coalesce(a.agent, a.actor)"
_STANDS = "a.state IN ('done', 'failed')"
# What a turn did that has vanished from its conversation is nobody's turn any more.
_IN_SIGHT = f"a.reason IS NOT '{rows.EDITED}'"
# Each session is found by a step in the index, not by a walk over all of its acts.
_NAMES = """
    WITH RECURSIVE name(session) AS (
        SELECT min(session) FROM undo_acted WHERE session IS NOT NULL
        UNION ALL
        SELECT (SELECT min(session) FROM undo_acted WHERE session > name.session) FROM name
        WHERE name.session IS NOT NULL
    )
    SELECT session, (SELECT max(seq) FROM undo_acted WHERE session = name.session) AS newest
    FROM name WHERE session IS NOT NULL ORDER BY newest DESC
"""


def sessions(db: Database, ctx: Context, args: SessionsOf) -> SessionsActed:
    """The sessions that acts belong to, the one last active first, one for each agent that has it."""
    names = [args.session] if args.session is not None else [row["session"] for row in db.execute(_NAMES)]
    where, values = limits(ctx)
    if args.agent is not None:
        where, values = f"{where} AND {_WHO} = ?", [*values, args.agent]
    sql = (
        f"SELECT {_WHO} AS agent, min(a.at) AS at, max(a.at) AS last, sum({_IN_SIGHT}) AS acts"
        f" FROM undo_acted a WHERE a.session = ? AND a.role = 'act' AND {where} GROUP BY {_WHO}"
        " ORDER BY max(a.seq) DESC"
    )
    found: list[SessionActed] = []
    for name in names:
        if len(found) >= args.limit:
            break
        acted = map(dict, db.execute(sql, [name, *values]))
        found += [SessionActed(session=name, **one) for one in acted]
    return SessionsActed(sessions=found[: args.limit])


def turns(db: Database, ctx: Context, args: TurnsOf) -> TurnsActed:
    """The turns of a session in the order in which each first acted; None is what belongs to no message.

    What vanished with an edit is left out.
    """
    where, values = limits(ctx)
    if args.agent is not None:
        where, values = f"{where} AND {_WHO} = ?", [*values, args.agent]
    sql = (
        f"SELECT a.turn, min(a.at) AS at, count(*) AS acts, sum({_STANDS}) AS standing"
        f" FROM undo_acted a WHERE a.session = ? AND a.role = 'act' AND {_IN_SIGHT} AND {where}"
        " GROUP BY a.turn ORDER BY min(a.seq)"
    )
    acted = map(dict, db.execute(sql, [args.session, *values]))
    return TurnsActed(turns=[TurnActed(**one) for one in acted])
