"""core/sessions: conversations, their messages, and what was done in each."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from anyio.abc import TaskGroup

from takeback import Context, Host, Module, tool
from takeback.callers import Caller
from takeback.holds import busy
from takeback.rewinding import Rewound
from takeback.store import Transaction
from takeback_core.sessions import conversations, models, phrases, refusals, schema
from takeback_core.sessions.conversations import Kept
from takeback_core.sessions.editing import Editor, of
from takeback_core.sessions.happenings import SessionsSaid
from takeback_core.sessions.telling import Teller

_ANYBODY = ("person", "agents", "modules")


class SessionsModule(Module):
    """Keeps conversations for those who ask, and lets the person go back to a message of one."""

    migrations: ClassVar[tuple[str, ...]] = schema.MIGRATIONS

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._store = host.store
        self._editor = Editor(host)
        self._teller = Teller(host.store)

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        """Runs of an earlier process are over."""
        await self._store.transaction(conversations.cut_off)
        yield

    def on_rewind(self, tx: Transaction, rewound: Rewound) -> None:
        """Apply the edit that a rewind was asked for with, in the rewind's own transaction."""
        self._editor.on_rewind(tx, rewound)

    # ------------------------------------------------------------------ looking

    @tool(effect="read", reach=_ANYBODY, name="list")
    async def list_sessions(self, ctx: Context, args: models.ListSessions) -> models.Conversations:
        """List sessions, the one last active first: an agent its own, the person all."""
        return await self._teller.every(ctx, _own(ctx) or args.agent, args.limit)

    @tool(effect="read", reach=_ANYBODY)
    async def show(self, ctx: Context, args: models.Session) -> models.Shown:
        """Show a session with its turns and how many acts of each stand."""
        return await self._teller.one(ctx, _own(ctx) or args.agent, args.session)

    @tool(effect="read", reach=_ANYBODY)
    async def messages(self, ctx: Context, args: models.Session) -> models.Messages:
        """List a conversation's messages as they are now, oldest first; edits leave no trace in it."""
        kept = await self._kept(ctx, args.session, args.agent)
        return models.Messages(messages=await self._store.read(lambda db: conversations.messages(db, kept)))

    @tool(effect="read", reach=_ANYBODY)
    async def preview(self, ctx: Context, args: models.Preview) -> models.Previewed:
        """Tell what rolling back to a message will do, in groups and, on demand, one by one."""
        kept = await self._kept_or_known(ctx, args)
        turn = await self._editor.first_acting(ctx, kept, args.turn)
        if turn is None:
            return models.Previewed(groups=[], total=0, conflicts=0, digest=None)
        asked = {"session": kept.session, "turn": turn, "skip_conflicts": args.skip_conflicts}
        plan = (await ctx.call("undo.preview", asked | of(kept))).plan
        groups = phrases.grouped(plan)
        return models.Previewed(
            groups=groups,
            total=sum(group.count for group in groups),
            conflicts=len(plan.conflicts),
            digest=plan.digest,
            rows=phrases.details(plan) if args.rows else [],
        )

    # ------------------------------------------------------------------ keeping, for apps and agents

    @tool(effect="write", reach=("agents", "modules"), idempotent=True)
    async def open(self, ctx: Context, args: models.Open) -> models.Conversation:
        """Have a conversation's messages kept here, so that they can be edited.

        A module that opens one keeps its own messages, and changes them in `on_rewind`.
        """
        agent, caller = _actor(ctx), Caller.parse(ctx.caller)
        owner = caller.name if caller.kind == "module" and caller.name else self.name
        kept = await self._store.transaction(
            lambda tx: conversations.open_one(tx, agent, args.session, owner, args.title)
        )
        return await self._teller.conversation(ctx, kept)

    @tool(effect="write", reach=("agents", "modules"))
    async def say(self, ctx: Context, args: models.Say) -> models.Message:
        """Append a message of the person's to a conversation; it is then to be run."""
        refusals.require_text(args.text)
        kept = await self._kept(ctx, args.session, None)
        turn = args.turn or f"turn-{secrets.token_hex(8)}"

        def say(tx: Transaction) -> models.Message:
            if not conversations.say(tx, kept, turn, args.text):
                raise refusals.turn_taken(turn)
            tx.emit(SessionsSaid(agent=kept.agent, session=kept.session, turn=turn))
            return conversations.messages(tx, kept)[-1]

        return await self._store.transaction(say)

    @tool(effect="write", reach=("agents", "modules"), idempotent=True)
    async def begin(self, ctx: Context, args: models.Turn) -> models.Message:
        """Begin to run a message; until it ends the conversation is busy and can't be edited."""
        kept = await self._kept(ctx, args.session, args.agent)
        return await self._store.transaction(lambda tx: self._mark(tx, kept, args.turn, "running"))

    @tool(effect="write", reach=_ANYBODY, past=True, idempotent=True)
    async def end(self, ctx: Context, args: models.EndTurn) -> models.Message:
        """End the run of a message; the person may say so of one whose program has died."""
        kept = await self._kept(ctx, args.session, args.agent)
        return await self._store.transaction(lambda tx: self._mark(tx, kept, args.turn, args.outcome))

    # ------------------------------------------------------------------ editing

    @tool(effect="write", reach=_ANYBODY, past=True, destructive=True)
    async def edit(self, ctx: Context, args: models.Edit) -> models.Edited:
        """Have a message say something else, with or without rolling back what was done since.

        Later messages vanish, and the message is to be run again.
        """
        known = await self._kept_or_known(ctx, args)
        if not known.owner:
            raise refusals.not_editable(args.session, args.turn)
        if known.running is not None:
            raise busy()
        return await self._editor.edit(ctx, known, args)

    def _mark(self, tx: Transaction, kept: Kept, turn: str, state: str) -> models.Message:
        now = conversations.find(tx, kept.agent, kept.session)[0].running
        if state == "running" and now not in (None, turn):
            raise busy()
        if not conversations.mark(tx, kept, turn, state):
            raise refusals.unknown_turn(turn)
        return next(one for one in conversations.messages(tx, kept) if one.turn == turn)

    async def _kept(self, ctx: Context, session: str, agent: str | None) -> Kept:
        """A conversation that somebody keeps; raises `sessions.unknown`, `sessions.ambiguous`."""
        who = _own(ctx) or agent
        found = await self._store.read(lambda db: conversations.find(db, who, session))
        if not found:
            raise refusals.unknown(session)
        if len(found) > 1:
            raise refusals.ambiguous(session, [kept.agent for kept in found])
        return found[0]

    async def _kept_or_known(self, ctx: Context, args: Any) -> Kept:
        """A session that is kept, or of which the log knows acts; the latter has no owner."""
        shown = await self._teller.one(ctx, _own(ctx) or args.agent, args.session)
        return Kept(shown.agent, shown.session, shown.owner or "", shown.title, shown.at, shown.running)


def _own(ctx: Context) -> str | None:
    """The agent whose sessions alone the caller may see; None for the person."""
    origin = Caller.parse(ctx.origin)
    return None if origin.kind == "person" else _actor(ctx)


def _actor(ctx: Context) -> str:
    origin = Caller.parse(ctx.origin)
    return origin.name if origin.kind == "agent" and origin.name else origin.label
