"""How far going back to a message reaches: the turns that vanish with it, and what they did."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from takeback.context import Context
from takeback.store import Store
from takeback_core.sessions import conversations
from takeback_core.sessions.conversations import Kept
from takeback_core.sessions.refusals import unknown_turn

NOTHING = hashlib.sha256(b"[]").hexdigest()
"""The digest of a plan in which nothing is done."""


class Reached(NamedTuple):
    """What going back reaches.

    `acting` is the vanishing turn that acted first, None where none did; `standing` how many acts of the
    vanishing turns stand, and `later` how many messages come after.
    """

    acting: str | None
    standing: int
    later: int


async def reached(ctx: Context, store: Store, kept: Kept, turn: str) -> Reached:
    """What going back to a message reaches; raises `sessions.unknown_turn`.

    Of a conversation whose messages nobody told us, a turn is known by what it did.
    """
    said = await store.read(lambda db: conversations.turns(db, kept))
    told = (await ctx.call("undo.turns", {"session": kept.session, "agent": kept.agent})).turns
    names = said or [one.turn for one in told]
    if turn not in names:
        raise unknown_turn(turn)
    vanishing = names[names.index(turn) :]
    acted = [one for one in told if one.turn is not None and one.turn in set(vanishing)]
    return Reached(
        acting=acted[0].turn if acted else None,
        standing=sum(one.standing for one in acted),
        later=len(vanishing) - 1,
    )
