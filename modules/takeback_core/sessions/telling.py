"""Telling of sessions: what is kept of them here, joined with what the log knows was done in each."""

from __future__ import annotations

from typing import Any

from takeback.context import Context
from takeback.store import Store
from takeback_core.sessions import conversations
from takeback_core.sessions.conversations import Kept
from takeback_core.sessions.models import Conversation, Conversations, Shown, TurnShown
from takeback_core.sessions.refusals import ambiguous, unknown


class Teller:
    """Answers from two sources: a conversation may have no act yet, a session no conversation."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def every(self, ctx: Context, agent: str | None, limit: int) -> Conversations:
        """Sessions of an agent, or all, the one last active first."""
        kept = await self._store.read(lambda db: conversations.every(db, agent))
        asked = {"limit": limit} if agent is None else {"limit": limit, "agent": agent}
        acted = (await ctx.call("undo.sessions", asked)).sessions
        by_key = {(one.agent, one.session): one for one in acted}
        found = [_joined(one, by_key.pop((one.agent, one.session), None)) for one in kept]
        found += [_acted(one) for one in by_key.values()]
        found.sort(key=lambda one: one.last, reverse=True)
        return Conversations(sessions=found[:limit])

    async def conversation(self, ctx: Context, kept: Kept) -> Conversation:
        """One that is kept."""
        asked = {"session": kept.session, "agent": kept.agent, "limit": 1}
        acted = (await ctx.call("undo.sessions", asked)).sessions
        return _joined(kept, acted[0] if acted else None)

    async def one(self, ctx: Context, agent: str | None, session: str) -> Shown:
        """A session with its turns; raises `sessions.unknown`, `sessions.ambiguous`."""
        kept = await self._store.read(lambda db: conversations.find(db, agent, session))
        asked = {"session": session} if agent is None else {"session": session, "agent": agent}
        acted = (await ctx.call("undo.sessions", asked)).sessions
        agents = sorted({one.agent for one in kept} | {one.agent for one in acted})
        if not agents:
            raise unknown(session)
        if len(agents) > 1:
            raise ambiguous(session, agents)
        known = acted[0] if acted else None
        told = _joined(kept[0], known) if kept else _acted(known)
        return Shown(**told.model_dump(), turns=await self._turns(ctx, kept[0] if kept else None, told))

    async def _turns(self, ctx: Context, kept: Kept | None, told: Conversation) -> list[TurnShown]:
        acted = (await ctx.call("undo.turns", {"session": told.session, "agent": told.agent})).turns
        by_turn = {one.turn: one for one in acted}
        said = [] if kept is None else await self._store.read(lambda db: conversations.messages(db, kept))
        shown = []
        for message in said:
            done = by_turn.pop(message.turn, None)
            acts, standing = (done.acts, done.standing) if done is not None else (0, 0)
            fields = message.model_dump()
            shown.append(TurnShown(**fields, acts=acts, standing=standing))
        for one in by_turn.values():
            counts = {"acts": one.acts, "standing": one.standing}
            shown.append(TurnShown(turn=one.turn, text=None, state=None, at=one.at, **counts))
        return shown


def _joined(kept: Kept, acted: Any) -> Conversation:
    return Conversation(
        session=kept.session,
        agent=kept.agent,
        owner=kept.owner,
        title=kept.title,
        at=kept.at,
        last=acted.last if acted is not None else kept.at,
        acts=acted.acts if acted is not None else 0,
        running=kept.running,
    )


def _acted(acted: Any) -> Conversation:
    return Conversation(
        session=acted.session,
        agent=acted.agent,
        owner=None,
        title="",
        at=acted.at,
        last=acted.last,
        acts=acted.acts,
        running=None,
    )
