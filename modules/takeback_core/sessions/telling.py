"""Telling of sessions: what is kept of them here, joined with what the log knows was done in each."""

from __future__ import annotations

from typing import Any

from takeback.context import Context
from takeback.store import Store
from takeback_core.sessions import conversations, noting
from takeback_core.sessions.conversations import Database, Kept
from takeback_core.sessions.models import Conversation, Conversations, Message, Shown, TurnShown
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
        listed = found[:limit]
        if len(acted) == limit:  # of some that are kept the acts may be older than all of these
            listed = [await self._with_acts(ctx, one) if one.acts == 0 else one for one in listed]
        return Conversations(sessions=listed)

    async def kept(self, agent: str | None, session: str) -> Kept:
        """A conversation that somebody keeps; raises `sessions.unknown`, `sessions.ambiguous`."""
        found = await self._store.read(lambda db: conversations.find(db, agent, session))
        if not found:
            raise unknown(session)
        if len(found) > 1:
            raise ambiguous(session, [kept.agent for kept in found])
        return found[0]

    async def conversation(self, ctx: Context, kept: Kept) -> Conversation:
        """One that is kept."""
        return await self._with_acts(ctx, _joined(kept, None))

    async def one(self, ctx: Context, agent: str | None, session: str) -> Shown:
        """A session with its turns; raises `sessions.unknown`, `sessions.ambiguous`."""
        kept, acted = await self._look_up(ctx, agent, session)
        told = _joined(kept, acted) if kept is not None else _acted(acted)
        return Shown(**told.model_dump(), turns=await self._turns(ctx, kept, told))

    async def known(self, ctx: Context, agent: str | None, session: str) -> Kept:
        """A session that is kept or, without an owner, one of which there are acts; raises as `one` does."""
        kept, acted = await self._look_up(ctx, agent, session)
        return kept or Kept(acted.agent, session, "", "", acted.at, acted.last, None)

    async def _look_up(self, ctx: Context, agent: str | None, session: str) -> tuple[Kept | None, Any]:
        kept = await self._store.read(lambda db: conversations.find(db, agent, session))
        asked = {"session": session} if agent is None else {"session": session, "agent": agent}
        acted = (await ctx.call("undo.sessions", asked)).sessions
        agents = sorted({one.agent for one in kept} | {one.agent for one in acted})
        if not agents:
            raise unknown(session)
        if len(agents) > 1:
            raise ambiguous(session, agents)
        return kept[0] if kept else None, acted[0] if acted else None

    async def _turns(self, ctx: Context, kept: Kept | None, told: Conversation) -> list[TurnShown]:
        acted = (await ctx.call("undo.turns", {"session": told.session, "agent": told.agent})).turns
        by_turn = {one.turn: one for one in acted}
        said, noted = await self._store.read(lambda db: _said(db, kept, told))
        shown = []
        for message in said:
            done = by_turn.pop(message.turn, None)
            acts, standing = (done.acts, done.standing) if done is not None else (0, 0)
            shown.append(TurnShown(**message.model_dump(), acts=acts, standing=standing))
        for one in by_turn.values():
            counts = {"acts": one.acts, "standing": one.standing}
            text = noted.get(one.turn or "")
            shown.append(TurnShown(turn=one.turn, text=text, state=None, at=one.at, **counts))
        return shown

    async def _with_acts(self, ctx: Context, one: Conversation) -> Conversation:
        asked = {"session": one.session, "agent": one.agent, "limit": 1}
        acted = (await ctx.call("undo.sessions", asked)).sessions
        if not acted:
            return one
        return one.model_copy(update={"acts": acted[0].acts, "last": max(acted[0].last, one.last)})


def _said(db: Database, kept: Kept | None, told: Conversation) -> tuple[list[Message], dict[str, str]]:
    if kept is not None:
        return conversations.messages(db, kept, longest=noting.LONGEST), {}
    return [], noting.texts(db, told.agent, told.session)


def _joined(kept: Kept, acted: Any) -> Conversation:
    return Conversation(
        session=kept.session,
        agent=kept.agent,
        owner=kept.owner,
        title=kept.title,
        at=kept.at,
        last=kept.last if acted is None else max(acted.last, kept.last),
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
