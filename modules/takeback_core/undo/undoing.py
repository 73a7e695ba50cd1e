"""Taking back: the one way that run, redo and rewind go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from takeback.callers import Caller
from takeback.context import Context
from takeback.errors import ConflictError, RefusedError, UsageError
from takeback.store import Store
from takeback_core.undo import rows
from takeback_core.undo.actors import Actors, asker_of
from takeback_core.undo.chosen import Chosen
from takeback_core.undo.models import Outcome, Result, Rewind, RunRedo, RunUndo
from takeback_core.undo.planner import Planner
from takeback_core.undo.records import results_of
from takeback_core.undo.runner import Runner
from takeback_core.undo.runs import Past, run_record
from takeback_core.undo.steps import Draft


@dataclass(frozen=True, slots=True)
class Request:
    """An undo, redo or rewind as it was asked for: by which tool, with what, and which acts it means."""

    tool: str
    args: RunUndo | RunRedo | Rewind
    choose: Callable[[rows.Database], Chosen]

    @property
    def asked(self) -> str:
        """What was asked, the same for every retry."""
        return f"{self.tool} {self.args.model_dump_json(exclude={'key'})}"

    def past(self, ctx: Context) -> Past | None:
        """The session whose past is ended, where it was asked for one."""
        args = self.args
        if not isinstance(args, Rewind) or args.session is None:
            return None
        asker = asker_of(ctx) if args.key is not None else None
        return Past(session=args.session, turn=args.turn, agent=args.agent, key=args.key, asker=asker)

    @property
    def skips(self) -> bool:
        """Whether what can't be taken back is left out."""
        return not isinstance(self.args, RunRedo) and self.args.skip_conflicts


class Undoing:
    """Chooses, plans, and executes what was asked, or refuses all of it."""

    def __init__(self, store: Store, planner: Planner, runner: Runner, actors: Actors) -> None:
        self._store = store
        self._planner = planner
        self._runner = runner
        self._actors = actors

    async def undo(self, ctx: Context, request: Request) -> Outcome:
        """Take back what a request names; in a dry run only its plan.

        Raises what the plan is refused for (`undo.conflict`, `undo.dependents`, `undo.not_undoable`,
        `undo.plan_changed`, a refusal of an inverse), `undo.failed`, and for keys `undo.key_reused` and
        `undo.unsettled`.
        """
        if not ctx.dry_run and (known := await self._known(ctx, request)):
            return known
        chosen = await self._store.read(request.choose)
        draft = await self._planner.draft(ctx, chosen, force=request.args.force, skip=request.skips)
        already = [_already(row) for row in chosen.already]
        if not chosen.rows:
            # What the plan promised is so already, be it by the very same plan.
            return Outcome(plan=draft.plan, results=[] if ctx.dry_run else already)
        await self._require_same(ctx, request, chosen, draft)
        if ctx.dry_run:
            return Outcome(plan=draft.plan, results=[])
        if not request.skips:
            _require_runnable(draft)
        elif len(draft.blocking()) == len(draft.steps):
            return Outcome(plan=draft.plan, results=already)
        outcome = await self._execute(ctx, request, chosen, draft)
        outcome.results += already
        return outcome

    async def _execute(self, ctx: Context, request: Request, chosen: Chosen, draft: Draft) -> Outcome:
        return await self._runner.execute(
            ctx,
            chosen,
            draft,
            tool=request.tool,
            summary=_summary(request.tool, draft),
            actor_kind=await self._actors.kind(Caller.parse(ctx.origin)),
            key=request.args.key,
            asked=request.asked,
            past=request.past(ctx),
        )

    async def _require_same(self, ctx: Context, request: Request, chosen: Chosen, draft: Draft) -> None:
        digest = request.args.digest
        if digest is None or digest == draft.plan.digest:
            return
        # With force, or with leave to skip, the plan that was looked at before may be the one without it.
        lenient = request.args.force or request.skips
        if lenient and (await self._planner.draft(ctx, chosen)).plan.digest == digest:
            return
        raise ConflictError(
            "undo.plan_changed",
            "What undoing would do has changed since it was previewed, so nothing was done",
            "Look at the new plan and confirm that one.",
            data={"plan": draft.plan.model_dump(mode="json")},
        )

    async def _known(self, ctx: Context, request: Request) -> Outcome | None:
        """The answer to an earlier run with the same key, so that a retry runs nothing twice."""
        key = request.args.key
        if key is None:
            return None
        where = "a.actor = ? AND a.run_key = ?"
        found = await self._store.read(lambda db: rows.many(db, where, [ctx.origin, key]))
        if not found:
            return None
        record = run_record(found[0])
        if record.asked != request.asked or record.plan is None:
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
        return Outcome(plan=record.plan, results=results_of(record), act=found[0].id)


def _already(row: rows.Row) -> Result:
    part = row.state != "undone" and bool(row.taken)
    return Result(id=row.id, state=row.state, already=True, part=part)  # type: ignore[arg-type]


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
    running = [step.step for step in draft.steps if step.runs]
    if len(running) != 1:
        return f"{verb} of {len(running)} acts"
    part = " of a part" if running[0].part else ""
    return f"{verb}{part}: {running[0].summary}"[:1000]
