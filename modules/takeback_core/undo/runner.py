"""The runner: executes a plan, all of it or nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from takeback import faults, moments
from takeback.context import Context
from takeback.errors import ConflictError, RefusedError, TakebackError
from takeback.joint import Joint
from takeback.store import Transaction
from takeback_core.undo import rows
from takeback_core.undo.chosen import Chosen
from takeback_core.undo.ending import Ending
from takeback_core.undo.inverter import Inverter, may_pass
from takeback_core.undo.looking import versions
from takeback_core.undo.models import Outcome
from takeback_core.undo.records import record_of, results_of, run_row
from takeback_core.undo.rows import Row
from takeback_core.undo.runs import Past, RunRecord, release, standing_counters
from takeback_core.undo.steps import Draft, PlannedStep, overtake, unvalued

# A run that outlives its lease has died or hangs; only another daemon on the same database would ask.
_LEASE = timedelta(minutes=10)


@dataclass(slots=True)
class Run:
    """One undo under way: its own row, what it is to change, and the steps that have run, in their joint."""

    id: str
    record: RunRecord
    ran: list[PlannedStep] = field(default_factory=list)
    failing: PlannedStep | None = None
    joint: Joint = field(default_factory=Joint)

    def before(self, step: PlannedStep, countered: Mapping[str | None, str]) -> dict[str, str]:
        """The versions a step found, or would have, had those not run whose counters came to nothing."""
        found = dict(self.record.started)
        for one in self.ran[: self.ran.index(step)] if step in self.ran else self.ran:
            if countered.get(one.row.id) != "abandoned":
                overtake(found, one.predicted)
        return {name: found.get(name, version) for name, version in step.expected.items()}

    def blame(self, names: Collection[str]) -> None:
        """Have the first step that touched one of these be the one that failed."""
        self.failing = next((step for step in self.ran if not step.predicted.keys().isdisjoint(names)), None)


class Runner(Inverter):
    """Executes drafts: claims the acts, runs each inverse confined to what its act touched, verifies."""

    def __init__(self, *parts: Any, ending: Ending) -> None:
        super().__init__(*parts)
        self.ending = ending

    async def execute(
        self,
        ctx: Context,
        chosen: Chosen,
        draft: Draft,
        *,
        tool: str,
        summary: str,
        actor_kind: str,
        key: str | None,
        asked: str,
        past: Past | None,
    ) -> Outcome:
        """Run the steps of a draft that can run; raises `undo.failed` when one fails, with all as before."""
        faults.point("undo.claiming")
        record = record_of(chosen, draft)
        record.rewound = past
        if key is not None:
            record.asked, record.plan = asked, unvalued(draft.plan)
        run = await self._claim(ctx, chosen, record, run_row(ctx, record, tool, summary, actor_kind, key))
        faults.point("undo.claimed")
        try:
            await self._carry_out(ctx, run, draft)
        finally:
            await run.joint.rollback()  # it has ended but for an undo that is cancelled
        await self._finish(ctx, run)
        return Outcome(plan=draft.plan, results=results_of(run.record), act=run.id)

    # ------------------------------------------------------------------ one run, step by step

    async def _carry_out(self, ctx: Context, run: Run, draft: Draft) -> None:
        try:
            for step in draft.steps:
                if step.runs and not step.idle:
                    run.failing = step
                    await self._reverse(ctx, run, step)
            run.failing = None
            await self._verify(ctx, run, draft)
            await self.ending.rehearse(run.id, run.record, ctx.origin)
            await self._decide(run)
        except Exception as error:
            known = error if isinstance(error, TakebackError) else _crash(error)
            await run.joint.rollback()
            as_before = await self._give_up(ctx, run, known)
            raise _failed(run, known, as_before) from error

    async def _finish(self, ctx: Context, run: Run) -> None:
        faults.point("undo.finishing")
        try:
            await self.ending.end(run.id, run.record, ctx.origin)
        except BaseException:
            self.held.add(run.id)  # all of it has happened, so it is finished before the next
            raise
        faults.point("undo.finished")

    async def _claim(self, ctx: Context, chosen: Chosen, record: RunRecord, row: dict[str, Any]) -> Run:
        given = {subject.id: subject for subject in record.subjects}
        subjects = [one for one in chosen.subjects if one.row.id in given]
        row["lease_owner"] = self._boot

        def claim(tx: Transaction) -> None:
            for subject in subjects:
                ends = record.sets == "undone" and not given[subject.row.id].part
                self._claim_one(tx, subject.row, row["id"] if ends else None)
            rows.insert(tx, row, ())

        await self._store.transaction(claim)
        return Run(row["id"], record)

    def _claim_one(self, tx: Transaction, row: Row, undone_in: str | None) -> None:
        now = rows.one(tx, row.id)
        if now is None or now.state != row.state:
            raise ConflictError(
                "undo.changed", "The log has changed since the plan was made", "Look again and retry."
            )
        until = moments.stamp(datetime.now(UTC) + _LEASE)
        rows.update(
            tx, row.id, state="undoing", lease_owner=self._boot, lease_until=until, tries=now.tries + 1
        )
        if undone_in is not None:
            rows.update(tx, row.id, undone_in=undone_in)

    async def _reverse(self, ctx: Context, run: Run, step: PlannedStep) -> None:
        faults.point("undo.step")
        force, only = step.step.forced, step.only
        await self._invert(
            ctx, run.id, step.row, step.expected, ctx.origin, run.joint, force=force, only=only
        )
        run.ran.append(step)
        faults.point("undo.stepped")

    async def _verify(self, ctx: Context, run: Run, draft: Draft) -> None:
        """Compare the resources with what the plan promised, before anything is reported done."""
        faults.point("undo.verifying")
        promised = draft.predicted()
        now = await versions(ctx, promised, joint=run.joint)
        for name, version in promised.items():
            if now is not None and now.get(name, version) != version:
                run.blame([name])
                raise ConflictError(
                    "undo.not_as_planned",
                    f"{name:.500} is not as the plan promised",
                    "Somebody changed it at the same moment. Look at the preview again.",
                )

    async def _decide(self, run: Run) -> None:
        """Have what the steps changed together come true."""
        try:
            await run.joint.prepare()
            await run.joint.commit()
        except TakebackError as error:
            run.blame([str(error.data.get("resource"))])
            raise

    async def _give_up(self, ctx: Context, run: Run, error: TakebackError) -> bool:
        """Put back what ran and let the acts go, the failing one with the error; whether all is as before."""
        if not await self._hear(ctx, run.id):
            self.held.add(run.id)
            return False
        left = await self._without_counter(ctx, run, error)
        stuck = "an inverse that ran recorded no way back" if left else None
        try:
            await self.put_back(ctx, run.id, ctx.origin)
        except Exception as second:
            if may_pass(second):
                self.held.add(run.id)
                return False
            stuck = second.code if isinstance(second, TakebackError) else type(second).__name__
        failing = run.failing.row if run.failing else (run.ran[-1].row if run.ran else None)

        def let_go(tx: Transaction) -> None:
            stands = left | {row.subject for row in standing_counters(tx, run.id)}
            release(tx, run.id, run.record, failing, error, stands=stands, reason=stuck)

        try:
            await self._store.transaction(let_go)
        except TakebackError:
            self.held.add(run.id)  # the log can't be written now; the resources are as they should be
        faults.point("undo.gave_up")
        return stuck is None

    async def _without_counter(self, ctx: Context, run: Run, error: TakebackError) -> set[str | None]:
        """The rows whose inverse ran, or may have, without recording what would put it back."""
        children = await self._store.read(lambda db: rows.children(db, run.id))
        countered = {row.subject: row.state for row in children if row.state in ("done", "abandoned")}
        before = {step.row.id: run.before(step, countered) for step in run.ran}
        ran = {name: found for name, found in before.items() if name not in countered}
        left: set[str | None] = {name for name, found in ran.items() if await _look(ctx, found) != found}
        # An owner that refuses has changed nothing; of one that failed its resources tell, if it has any.
        refused = isinstance(error, ConflictError | RefusedError)
        if run.failing is not None and not refused and run.failing.row.id not in countered:
            found = run.before(run.failing, countered)
            now = await _look(ctx, found)
            if now is not None and now != found:
                left.add(run.failing.row.id)
        return left


async def _look(ctx: Context, names: Iterable[str]) -> dict[str, str] | None:
    try:
        return await versions(ctx, names) or None
    except TakebackError:
        return None


def _crash(error: Exception) -> TakebackError:
    return TakebackError("undo.crashed", f"The undo ended unexpectedly ({type(error).__name__})")


def _failed(run: Run, error: TakebackError, as_before: bool) -> TakebackError:
    what = run.failing.step.summary if run.failing else "The undo"
    kind = ConflictError if isinstance(error, ConflictError) else TakebackError
    told = "Everything is as it was before." if as_before else "Not all could be put back: see the log."
    return kind(
        "undo.failed",
        f"{what}: this could not be taken back: {error.message}",
        f"{error.hint} {told}".strip(),
        retryable=as_before,
        data={"act": run.failing.step.act if run.failing else None, "cause": error.code},
    )
