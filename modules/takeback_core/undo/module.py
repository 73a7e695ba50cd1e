"""core/undo: the acted-log and its tools."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import ClassVar

import anyio
from anyio.abc import TaskGroup
from pydantic import BaseModel, Field

from takeback import Check, Context, Host, Module, tool
from takeback.errors import RefusedError, TakebackError
from takeback.rewinding import Rewound
from takeback.store import Transaction
from takeback.taps import Taps
from takeback_core.undo import conversing, models, retention, rows, schema, selection, session_models
from takeback_core.undo.actors import Actors, standing
from takeback_core.undo.chosen import Chosen
from takeback_core.undo.ending import Ending, close_edited
from takeback_core.undo.inverse import InverseCheck
from takeback_core.undo.keys import keyed
from takeback_core.undo.listing import page, recorded
from takeback_core.undo.planner import Planner, require_force
from takeback_core.undo.recorder import Recorder
from takeback_core.undo.runner import Runner
from takeback_core.undo.running import Running
from takeback_core.undo.settling import Settler, settle_by_word
from takeback_core.undo.undoing import Request, Undoing
from takeback_core.undo.untold import Untold
from takeback_core.undo.witness import Told, tell

_DAY = 86_400
_ANYBODY = ("person", "agents", "modules")


class UndoSettings(BaseModel):
    """The section `[undo]`.

    Rows older than `retention_days` go at start and once a day. One inverse may take `step_seconds`.
    """

    retention_days: float = Field(default=30, gt=0, le=36_500)
    step_seconds: float = Field(default=300, gt=0)


class UndoModule(Module):
    """Keeps the log of what was done for the person, and takes it back."""

    Settings = UndoSettings
    migrations: ClassVar[tuple[str, ...]] = schema.MIGRATIONS

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._store = host.store
        self._actors = Actors(host.ctx)
        self._inverses = InverseCheck(host.tools)
        self._running = Running()
        self._recorder = Recorder(host.store, self._actors, self._inverses, self._running)
        self._planner = Planner(host.store, self._inverses)
        seconds = host.settings.step_seconds
        self._runner = Runner(
            host.store,
            self._inverses,
            self._recorder,
            self._running,
            secrets.token_hex(8),
            seconds,
            ending=Ending(host.store, host.rewound),
        )
        self._undoing = Undoing(host.store, self._planner, self._runner, self._actors)
        self._settler = Settler(host.store, self._recorder, self._runner)
        self._untold = Untold(host.store, self._recorder)

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        """Look back at what a crash left, keep the retention, and forget who the assistant was on changes."""
        self._taps = Taps[models.Outcome](tasks)
        self._settling = anyio.Lock()
        await self._settler.look_back()
        stop = self.host.events.on("agents.changed", lambda seq, event: self._actors.forget())
        tasks.start_soon(self._expire_daily)
        try:
            yield
        finally:
            stop()

    def on_rewind(self, tx: Transaction, rewound: Rewound) -> None:
        """Close what turns did that have vanished from their conversation."""
        if rewound.turns:
            close_edited(tx, rewound)

    async def neighbours_changed(self) -> None:
        """Settle what waits for an owner that may be running now."""
        self._actors.forget()
        await self.host.ctx.call("undo.settle_crashed")

    async def _expire_daily(self) -> None:
        while True:
            try:
                await retention.expire(self._store, self.host.settings.retention_days)
            except TakebackError as error:  # a full disk must not take Undo away
                self.host.log.error("Rows past their time could not be removed: %s", error.code)
            await anyio.sleep(_DAY)

    # ------------------------------------------------------------------ recording, for modules that act

    @tool(effect="write", reach=("modules",))
    async def record(self, ctx: Context, args: models.RecordAct) -> models.Recorded:
        """Record an act that has happened and how to reverse it."""
        return await self._recorder.add(ctx, args, "done")

    @tool(effect="write", reach=("modules",))
    async def begin(self, ctx: Context, args: models.RecordAct) -> models.Recorded:
        """Record the intent of an act, durable before its effect."""
        return await self._recorder.add(ctx, args, "pending")

    @tool(effect="write", reach=("modules",), idempotent=True)
    async def confirm(self, ctx: Context, args: models.ConfirmAct) -> models.ActState:
        """Confirm that a begun act has happened."""
        return await self._recorder.confirm(ctx, args)

    @tool(effect="write", reach=("modules",), idempotent=True)
    async def abandon(self, ctx: Context, args: models.AbandonAct) -> models.ActState:
        """Settle a begun act whose effect failed, by asking or looking where its module doesn't know."""
        row = await self._recorder.begun(ctx, args.id)
        if row.state != "pending":
            return models.ActState(id=row.id, state=row.state)  # type: ignore[arg-type]
        try:
            told = Told("abandoned") if args.certain else await self._told(ctx, row)
        except TakebackError:
            self._untold.note(row.id)
            raise
        return await self._store.transaction(lambda tx: self._recorder.settle(tx, row, told))

    async def _told(self, ctx: Context, row: rows.Row) -> Told:
        joint = None if ctx.joint is None or ctx.joint.ended else ctx.joint
        own = self.host.ctx._replace(calls=ctx.calls, joint=joint)
        return await tell(own, row) or Told("unknown")

    @tool(effect="read", reach=("modules",))
    async def blobs(self, ctx: Context, args: models.Nothing) -> models.Named:
        """List the blobs that rows of the log still name."""
        found = await self._store.read(
            lambda db: db.execute("SELECT DISTINCT digest FROM undo_blob").fetchall()
        )
        return models.Named(digests=[digest for (digest,) in map(tuple, found)])

    @tool(effect="write", reach=("modules",), idempotent=True)
    async def settle_crashed(self, ctx: Context, args: models.Nothing) -> models.Nothing:
        """Settle what earlier processes left open, as far as owners can be asked."""
        async with self._settling:
            await self._settler.settle(ctx)
        return models.Nothing()

    # ------------------------------------------------------------------ looking

    @tool(effect="read", reach=_ANYBODY, name="list")
    async def list_acts(self, ctx: Context, args: models.ListActs) -> models.Acts:
        """List acts, newest first."""
        return await self._store.read(lambda db: page(db, ctx, args))

    @tool(effect="read", reach=("modules",))
    async def sessions(self, ctx: Context, args: session_models.SessionsOf) -> session_models.SessionsActed:
        """List the sessions that acts belong to, the one last active first."""
        return await self._store.read(lambda db: conversing.sessions(db, ctx, args))

    @tool(effect="read", reach=("modules",))
    async def turns(self, ctx: Context, args: session_models.TurnsOf) -> session_models.TurnsActed:
        """List the turns of a session, oldest first."""
        return await self._store.read(lambda db: conversing.turns(db, ctx, args))

    @tool(effect="read", reach=("modules",))
    async def keyed(self, ctx: Context, args: session_models.Keyed) -> session_models.KeyedUndo:
        """Tell what became of the undo that was asked for with a key nobody else has."""
        return await self._store.read(lambda db: keyed(db, args.key))

    @tool(effect="read", reach=("modules",))
    async def recorded(self, ctx: Context, args: models.RecordedOn) -> models.Acts:
        """List what the calling module recorded on a resource of its own, newest first, undos too."""
        return await self._store.read(lambda db: recorded(db, ctx, args))

    @tool(effect="read", reach=_ANYBODY)
    async def show(self, ctx: Context, args: models.ActId) -> models.Shown:
        """Show one act, what was recorded inside it, and the plan to take it back."""

        def look(db: rows.Database) -> tuple[rows.Row, list[rows.Row], Chosen]:
            row = selection.own(db, ctx, args.id)
            chosen = selection.to_redo(db, row) if row.state == "undone" else selection.to_undo(db, row)
            return row, rows.children(db, row.id), chosen

        row, children, chosen = await self._store.read(look)
        draft = await self._planner.draft(ctx, chosen)
        return models.Shown(act=row.act(), plan=draft.plan, children=[child.act() for child in children])

    @tool(effect="read", reach=_ANYBODY)
    async def preview(self, ctx: Context, args: models.Preview) -> models.Previewed:
        """Plan an undo of one act or a rewind of many, without changing anything."""
        if args.force:
            require_force(ctx)
        chosen = await self._store.read(lambda db: selection.choose(db, ctx, args))
        draft = await self._planner.draft(ctx, chosen, force=args.force, skip=args.skip_conflicts)
        return models.Previewed(plan=draft.plan)

    # ------------------------------------------------------------------ taking back

    @tool(effect="write", reach=_ANYBODY, previews=True, past=True, idempotent=True, destructive=True)
    async def run(self, ctx: Context, args: models.RunUndo) -> models.Outcome:
        """Take one act back, or a part of it."""

        def choose(db: rows.Database) -> Chosen:
            row = selection.own(db, ctx, args.id)
            return selection.to_run(db, ctx, row, only=args.only, dependents=args.dependents)

        return await self._tapped(ctx, Request("undo.run", args, choose))

    @tool(effect="write", reach=_ANYBODY, previews=True, past=True, idempotent=True, destructive=True)
    async def redo(self, ctx: Context, args: models.RunRedo) -> models.Outcome:
        """Redo an act that was taken back, or all that one undo took back."""

        def choose(db: rows.Database) -> Chosen:
            return selection.to_redo(db, selection.own(db, ctx, args.id))

        return await self._tapped(ctx, Request("undo.redo", args, choose))

    @tool(effect="write", reach=_ANYBODY, previews=True, past=True, destructive=True)
    async def rewind(self, ctx: Context, args: models.Rewind) -> models.Outcome:
        """Take back a session, a turn and all after it, an agent's acts, or everything since a time."""
        request = Request("undo.rewind", args, lambda db: selection.choose(db, ctx, args))
        return await self._tapped(ctx, request)

    @tool(effect="write", reach=("person",), idempotent=True)
    async def pin(self, ctx: Context, args: models.Pin) -> models.Act:
        """Keep an act beyond its time, or let it go again."""

        def pin(tx: rows.Database) -> models.Act:
            row = selection.own(tx, ctx, args.id)
            rows.update(tx, row.id, pinned=int(args.pinned))
            return selection.own(tx, ctx, args.id).act()

        return await self._store.transaction(pin)

    @tool(effect="write", reach=("person",), person_only=True, idempotent=True)
    async def settle(self, ctx: Context, args: models.Settle) -> models.ActState:
        """Say whether an act happened whose outcome a crash hid."""
        return await self._store.transaction(
            lambda tx: settle_by_word(tx, selection.own(tx, ctx, args.id), args.happened)
        )

    @tool(effect="write", reach=("person",), previews=True, idempotent=True)
    async def gc(self, ctx: Context, args: models.Collect) -> models.Collected:
        """Remove rows that are older than the retention, now; a dry run only counts them."""
        days = self.host.settings.retention_days if args.days is None else args.days
        expiry = await retention.expire(self._store, days, dry_run=ctx.dry_run)
        return models.Collected(removed=expiry.removed, live=expiry.live)

    async def checks(self) -> list[Check]:
        """Acts whose outcome nobody knows."""
        sql = "SELECT count(*) FROM undo_acted WHERE state = 'unknown' AND state <> 'done'"
        count = await self._store.read(lambda db: int(db.execute(sql).fetchone()[0]))
        hint = "`takeback log --state unknown` shows them." if count else ""
        return [Check("acts with an unknown outcome", not count, str(count), hint)]

    async def _tapped(self, ctx: Context, request: Request) -> models.Outcome:
        if request.args.force:
            require_force(ctx)
        # Who may not, or names nothing, hears it before joining anybody's run.
        await self._store.read(request.choose)
        if ctx.dry_run:
            return await self._undoing.undo(ctx, request)
        if self._running.step(ctx.calls) is not None:
            raise RefusedError("undo.nested", "An inverse can't start another undo", "Undo that by itself.")

        async def undo() -> models.Outcome:
            await self._recorder.confirm_again()
            await self._untold.ask_again(self.host.ctx)
            if self._runner.held:
                await self.host.ctx.call("undo.settle_crashed")
            past = request.past(ctx)
            with self.host.tools.holds.hold(ctx, past.session) if past is not None else nullcontext():
                return await self._undoing.undo(ctx, request)

        what = (request.tool, standing(ctx), request.args.model_dump_json())
        return await self._taps.run(what, undo)
