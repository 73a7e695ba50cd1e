"""core/sessions: conversations, their messages, and what was done in each."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ClassVar

from anyio.abc import TaskGroup
from pydantic import BaseModel, ConfigDict

from takeback import Context, Host, Module, tool
from takeback.callers import Caller
from takeback.holds import busy
from takeback.rewinding import Rewound
from takeback.store import Transaction
from takeback_core.sessions import conversations, models, noting, phrases, refusals, schema
from takeback_core.sessions.conversations import Kept
from takeback_core.sessions.editing import Editor
from takeback_core.sessions.happenings import SessionsSaid
from takeback_core.sessions.reaching import NOTHING, reached
from takeback_core.sessions.telling import Teller

_ANYBODY = ("person", "agents", "modules")


class SessionsSettings(BaseModel):
    """The section `[sessions]`.

    With `keep_text` the first characters of prompts to agents that keep their own conversations are noted.
    """

    model_config = ConfigDict(extra="forbid")
    keep_text: bool = True


class SessionsModule(Module):
    """Keeps conversations for those who ask, and lets the person go back to a message of one."""

    Settings = SessionsSettings
    migrations: ClassVar[tuple[str, ...]] = schema.MIGRATIONS

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._store = host.store
        self._teller = Teller(host.store)

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        """Runs of an earlier process are over, and what is not to be kept goes."""
        self._editor = Editor(self.host, tasks)
        await self._store.transaction(self._tidy)
        yield

    def _tidy(self, tx: Transaction) -> None:
        conversations.cut_off(tx)
        if self.host.settings.keep_text:
            noting.forget_old(tx)
        else:
            noting.forget_all(tx)

    async def neighbours_changed(self) -> None:
        """Bring edits to their end that an earlier process was in the middle of."""
        await self._editor.settle()

    def amend(self, tx: Transaction, rewound: Rewound) -> Rewound:
        """Say which edit a rewind was asked for with."""
        return self._editor.amend(tx, rewound)

    def on_rewind(self, tx: Transaction, rewound: Rewound) -> None:
        """Apply an edit, in the transaction in which what was done since is rolled back or dropped."""
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
        kept = await self._teller.kept(_own(ctx) or args.agent, args.session)
        return models.Messages(messages=await self._store.read(lambda db: conversations.messages(db, kept)))

    @tool(effect="read", reach=_ANYBODY)
    async def preview(self, ctx: Context, args: models.Preview) -> models.Previewed:
        """Tell what rolling back to a message will do, in groups and, on demand, one by one."""
        kept = await self._kept_or_known(ctx, args)
        found = await reached(ctx, self._store, kept, args.turn)
        if found.acting is None:
            return models.Previewed(groups=[], total=0, conflicts=0, later=found.later, digest=NOTHING)
        asked = {"session": kept.session, "agent": kept.agent, "turn": found.acting}
        plan = (await ctx.call("undo.preview", {**asked, "skip_conflicts": args.skip_conflicts})).plan
        groups = phrases.grouped(plan)
        return models.Previewed(
            groups=groups,
            total=sum(group.count for group in groups),
            conflicts=len(plan.conflicts),
            later=found.later,
            digest=plan.digest,
            rows=phrases.details(plan) if args.rows else [],
        )

    # ------------------------------------------------------------------ keeping, for apps and agents

    @tool(effect="write", reach=("agents", "modules"), idempotent=True)
    async def open(self, ctx: Context, args: models.Open) -> models.Conversation:
        """Have a conversation's messages kept here, so that they can be edited.

        A module that opens one keeps its own messages, and changes them in `on_rewind`; those that it says
        here as well tell which turns vanish.
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
        kept = await self._teller.kept(_own(ctx), args.session)
        turn = args.turn or f"turn-{secrets.token_hex(8)}"

        def say(tx: Transaction) -> models.Message:
            said = (
                conversations.message(tx, kept, turn)
                if conversations.say(tx, kept, turn, args.text)
                else None
            )
            if said is None:
                raise refusals.turn_taken(turn)
            tx.emit(SessionsSaid(agent=kept.agent, session=kept.session, turn=turn))
            return said

        with self._writing(ctx, kept):
            await self._editor.settle(kept)
            return await self._store.transaction(say)

    @tool(effect="write", reach=("agents", "modules"), idempotent=True)
    async def begin(self, ctx: Context, args: models.Turn) -> models.Message:
        """Begin to run a message; until it ends the conversation is busy and can't be edited."""
        kept = await self._teller.kept(_own(ctx) or args.agent, args.session)

        def begin(tx: Transaction) -> models.Message:
            if conversations.find(tx, kept.agent, kept.session)[0].running not in (None, args.turn):
                raise busy()
            return _known(conversations.mark(tx, kept, args.turn, "running"), args.turn)

        with self._writing(ctx, kept):
            await self._editor.settle(kept)
            return await self._store.transaction(begin)

    @tool(effect="write", reach=_ANYBODY, past=True, idempotent=True)
    async def end(self, ctx: Context, args: models.EndTurn) -> models.Message:
        """End the run of a message; the person may say so of one whose program has died."""
        kept = await self._teller.kept(_own(ctx) or args.agent, args.session)
        ended = await self._store.transaction(
            lambda tx: conversations.mark(tx, kept, args.turn, args.outcome)
        )
        return _known(ended, args.turn)

    @tool(effect="write", reach=("modules",), past=True, idempotent=True)
    async def noted(self, ctx: Context, args: models.Noted) -> models.Nothing:
        """Note how a prompt begins whose conversation nobody keeps here, so that turns can be told apart."""
        if self.host.settings.keep_text and args.text.strip():
            agent = _actor(ctx)
            await self._store.transaction(
                lambda tx: noting.note(tx, agent, args.session, args.turn, args.text)
            )
        return models.Nothing()

    # ------------------------------------------------------------------ editing

    @tool(effect="write", reach=_ANYBODY, past=True, destructive=True)
    async def edit(self, ctx: Context, args: models.Edit) -> models.Edited:
        """Have a message say something else, with or without rolling back what was done since.

        Later messages vanish, and the message is to be run again.
        """
        known = await self._kept_or_known(ctx, args)
        if not known.owner:
            raise refusals.not_editable(args.session, args.turn)
        return await self._editor.edit(ctx, known, args)

    @contextmanager
    def _writing(self, ctx: Context, kept: Kept) -> Iterator[None]:
        """Count a call in as one that writes in the conversation it names, whatever session it comes from."""
        holds, call = self.host.tools.holds, f"{ctx.id} says"
        holds.enter(kept.session, call)
        try:
            yield
        finally:
            holds.leave(kept.session, call)

    async def _kept_or_known(self, ctx: Context, args: Any) -> Kept:
        """A session that is kept, or of which the log knows acts; the latter has no owner."""
        agent = _own(ctx) or args.agent
        if agent is not None:
            found = await self._store.read(lambda db: conversations.find(db, agent, args.session))
            if found:
                return found[0]
        return await self._teller.known(ctx, agent, args.session)


def _known(message: models.Message | None, turn: str) -> models.Message:
    if message is None:
        raise refusals.unknown_turn(turn)
    return message


def _own(ctx: Context) -> str | None:
    """The agent whose sessions alone the caller may see; None for the person."""
    origin = Caller.parse(ctx.origin)
    return None if origin.kind == "person" else _actor(ctx)


def _actor(ctx: Context) -> str:
    origin = Caller.parse(ctx.origin)
    return origin.name if origin.kind == "agent" and origin.name else origin.label
