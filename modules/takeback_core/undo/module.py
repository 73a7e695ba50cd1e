"""core/undo: the acted-log and its tools."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import ClassVar

import anyio
from anyio.abc import TaskGroup
from pydantic import BaseModel, Field

from takeback import Check, Context, Host, Module, tool
from takeback.callers import Caller
from takeback.errors import ConflictError, RefusedError, UsageError
from takeback_core.undo import models, retention, rows, schema, selection
from takeback_core.undo.actors import Actors, standing
from takeback_core.undo.inverse import InverseCheck
from takeback_core.undo.listing import page
from takeback_core.undo.looking import verdict, versions
from takeback_core.undo.planner import Draft, Planner, require_force
from takeback_core.undo.recorder import Recorder
from takeback_core.undo.runner import Runner
from takeback_core.undo.running import Running
from takeback_core.undo.selection import Chosen
from takeback_core.undo.settling import Settler, settle_by_word
from takeback_core.undo.taps import Taps

_DAY = 86_400
_ANYBODY = ("person", "agents", "modules")


class UndoSettings(BaseModel):
    """The section `[undo]`; rows older than `retention_days` go at start and once a day."""

    retention_days: float = Field(default=30, gt=0)


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
        self._runner = Runner(host.store, self._inverses, self._running, secrets.token_hex(8))
        self._settler = Settler(host.store, self._recorder, self._runner)

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        """Look back at what a crash left, keep the retention, and forget who the assistant was on changes."""
        self._taps = Taps(tasks)
        self._settling = anyio.Lock()
        await self._settler.look_back()
        stop = self.host.events.on("agents.changed", lambda seq, event: self._actors.forget())
        tasks.start_soon(self._expire_daily)
        try:
            yield
        finally:
            stop()

    async def neighbours_changed(self) -> None:
        """Settle what waits for an owner that may be running now."""
        self._actors.forget()
        await self.host.ctx.call("undo.settle_crashed")

    async def _expire_daily(self) -> None:
        while True:
            await retention.expire(self._store, self.host.settings.retention_days)
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
    async def abandon(self, ctx: Context, args: models.ActId) -> models.ActState:
        """Settle a begun act whose effect failed, by looking at what it was to touch."""
        row = await self._recorder.begun(ctx, args.id)
        if row.state != "pending":
            return models.ActState(id=row.id, state=row.state)  # type: ignore[arg-type]
        own = self.host.ctx._replace(calls=ctx.calls)
        state = verdict(row.touched, await versions(own, [item.resource for item in row.touched]))
        return await self._store.transaction(lambda tx: self._recorder.settle(tx, row, state))

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
        chosen = await self._store.read(lambda db: _choose(db, ctx, args))
        draft = await self._planner.draft(ctx, chosen, force=args.force)
        return models.Previewed(plan=draft.plan)

    # ------------------------------------------------------------------ taking back

    @tool(effect="write", reach=_ANYBODY, previews=True, idempotent=True, destructive=True)
    async def run(self, ctx: Context, args: models.RunUndo) -> models.Outcome:
        """Take one act back."""

        def choose(db: rows.Database) -> Chosen:
            chosen = selection.to_undo(db, selection.own(db, ctx, args.id))
            return selection.with_dependents(db, ctx, chosen) if args.dependents else chosen

        return await self._tapped(ctx, "undo.run", args, choose)

    @tool(effect="write", reach=_ANYBODY, previews=True, idempotent=True, destructive=True)
    async def redo(self, ctx: Context, args: models.RunRedo) -> models.Outcome:
        """Redo an act that was taken back, or all that one undo took back."""
        return await self._tapped(
            ctx, "undo.redo", args, lambda db: selection.to_redo(db, selection.own(db, ctx, args.id))
        )

    @tool(effect="write", reach=_ANYBODY, previews=True, destructive=True)
    async def rewind(self, ctx: Context, args: models.Rewind) -> models.Outcome:
        """Take back a session, a turn and all after it, an agent's acts, or everything since a time."""
        return await self._tapped(
            ctx, "undo.rewind", args, lambda db: _choose(db, ctx, args), skip=args.skip_conflicts
        )

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

    @tool(effect="write", reach=("person",), idempotent=True)
    async def gc(self, ctx: Context, args: models.Nothing) -> models.Collected:
        """Remove rows that are older than the retention, now."""
        return models.Collected(
            removed=await retention.expire(self._store, self.host.settings.retention_days)
        )

    async def checks(self) -> list[Check]:
        """Acts whose outcome nobody knows."""
        sql = "SELECT count(*) FROM undo_acted WHERE state = 'unknown' AND state <> 'done'"
        count = await self._store.read(lambda db: int(db.execute(sql).fetchone()[0]))
        hint = "`takeback log --state unknown` shows them." if count else ""
        return [Check("acts with an unknown outcome", not count, str(count), hint)]

    async def _tapped(
        self,
        ctx: Context,
        name: str,
        args: models.RunUndo | models.RunRedo | models.Rewind,
        choose: Callable[[rows.Database], Chosen],
        *,
        skip: bool = False,
    ) -> models.Outcome:
        if args.force:
            require_force(ctx)
        await self._store.read(choose)  # who may not, or names nothing, hears it before joining anybody's run
        if ctx.dry_run:
            return await self._undo(ctx, name, args, choose, skip)
        if self._running.step(ctx.calls) is not None:
            raise RefusedError("undo.nested", "An inverse can't start another undo", "Undo that by itself.")
        what = (name, standing(ctx), args.model_dump_json())
        return await self._taps.run(what, lambda: self._undo(ctx, name, args, choose, skip))

    async def _undo(
        self,
        ctx: Context,
        name: str,
        args: models.RunUndo | models.RunRedo | models.Rewind,
        choose: Callable[[rows.Database], Chosen],
        skip: bool,
    ) -> models.Outcome:
        """Choose, plan, compare with the digest, refuse or execute."""
        asked = f"{name} {args.model_dump_json(exclude={'key'})}"
        if args.key is not None and not ctx.dry_run and (known := await self._known(ctx, args.key, asked)):
            return known
        chosen = await self._store.read(choose)
        draft = await self._planner.draft(ctx, chosen, force=args.force)
        already = [models.Result(id=row.id, state=row.state, already=True) for row in chosen.already]  # type: ignore[arg-type]
        if not chosen.rows:
            # What the plan promised is so already, be it by the very same plan.
            return models.Outcome(plan=draft.plan, results=[] if ctx.dry_run else already)
        if args.digest is not None and args.digest != draft.plan.digest:
            await self._require_same(ctx, chosen, args, draft)
        if ctx.dry_run:
            return models.Outcome(plan=draft.plan, results=[])
        if not skip:
            _require_runnable(draft)
        elif len(draft.blocking()) == len(draft.steps):
            return models.Outcome(plan=draft.plan, results=already)
        outcome = await self._runner.execute(
            ctx,
            chosen,
            draft,
            tool=name,
            summary=_summary(name, draft),
            actor_kind=await self._actors.kind(Caller.parse(ctx.origin)),
            key=args.key,
            asked=asked,
        )
        outcome.results += already
        return outcome

    async def _require_same(
        self,
        ctx: Context,
        chosen: Chosen,
        args: models.RunUndo | models.RunRedo | models.Rewind,
        draft: Draft,
    ) -> None:
        """With force, the plan that was looked at before may be the one without it."""
        if args.force and (await self._planner.draft(ctx, chosen)).plan.digest == args.digest:
            return
        raise ConflictError(
            "undo.plan_changed",
            "What undoing would do has changed since it was previewed, so nothing was done",
            "Look at the new plan and confirm that one.",
            data={"plan": draft.plan.model_dump(mode="json")},
        )

    async def _known(self, ctx: Context, key: str, asked: str) -> models.Outcome | None:
        """The answer to an earlier run with the same key, so that a retry runs nothing twice."""
        where = "a.actor = ? AND a.run_key = ?"
        found = await self._store.read(lambda db: rows.many(db, where, [ctx.origin, key]))
        if not found:
            return None
        record = rows.run_record(found[0])
        if record.asked != asked or record.plan is None:
            raise UsageError(
                "undo.key_reused", "This key was given to another undo", "Give each request a key of its own."
            )
        if found[0].state not in ("done", "undone"):
            raise ConflictError(
                "undo.unsettled",
                "An undo with this key was cut off, and what became of it is not settled yet",
                "`takeback log` shows it; switch on the module that owns what it touched.",
                retryable=True,
            )
        results = [models.Result(id=one.id, state=record.sets, already=False) for one in record.subjects]  # type: ignore[arg-type]
        return models.Outcome(plan=record.plan, results=results, act=found[0].id)


def _choose(db: rows.Database, ctx: Context, args: models.Selection) -> Chosen:
    filters = {args.session, args.turn, args.agent, args.since} - {None}
    if (args.id is None) == (not filters):
        raise UsageError(
            "undo.selection",
            "Name either one act by id, or a session, turn, agent or time",
            "See `takeback rewind --help`.",
        )
    if args.turn is not None and args.session is None:
        raise UsageError("undo.selection", "A turn is one of a session, so name the session too")
    if args.id is None:
        return selection.to_rewind(db, ctx, args)
    row = selection.own(db, ctx, args.id)
    if isinstance(args, models.Preview) and args.redo:
        return selection.to_redo(db, row)
    chosen = selection.to_undo(db, row)
    wants = isinstance(args, models.Preview) and args.dependents
    return selection.with_dependents(db, ctx, chosen) if wants else chosen


def _require_runnable(draft: Draft) -> None:
    blocking = draft.blocking()
    if not blocking:
        return
    plan = draft.plan.model_dump(mode="json")
    for step in blocking:
        if step.refusal is not None:
            refusal = step.refusal
            raise type(refusal)(
                refusal.code, refusal.message, refusal.hint, data={**refusal.data, "plan": plan}
            )
    if all(step.step.status == "not_undoable" for step in blocking):
        raise RefusedError(
            "undo.not_undoable",
            f"{blocking[0].step.summary}: this can't be taken back: {blocking[0].step.reason}",
            "A rewind can leave it out (skip_conflicts).",
            data={"plan": plan},
        )
    if all(step.step.status == "dependents" for step in blocking):
        raise ConflictError(
            "undo.dependents",
            f"{blocking[0].step.summary}: later acts rest on it, so undoing it alone would lose them",
            "Undo those first, or together with it (dependents).",
            data={"plan": plan},
        )
    raise ConflictError(
        "undo.conflict",
        f"{blocking[0].step.summary}: {blocking[0].step.reason}",
        "Nothing was changed. The plan shows each conflict; skip them in a rewind, or overwrite with force.",
        data={"plan": plan},
    )


def _summary(name: str, draft: Draft) -> str:
    verb = {"undo.run": "undo", "undo.redo": "redo", "undo.rewind": "rewind"}[name]
    running = [step.step.summary for step in draft.steps if step.runs]
    return f"{verb}: {running[0]}"[:1000] if len(running) == 1 else f"{verb} of {len(running)} acts"
