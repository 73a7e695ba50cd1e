"""The runner: executes a plan, all of it or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio

from takeback import faults, moments
from takeback.callers import Caller
from takeback.context import Context
from takeback.errors import ConflictError, RefusedError, TakebackError
from takeback.store import Store, Transaction
from takeback_core.undo import rows
from takeback_core.undo.chosen import Chosen, Subject
from takeback_core.undo.inverse import RUNS_AS, InverseCheck
from takeback_core.undo.looking import versions
from takeback_core.undo.models import Outcome, Result
from takeback_core.undo.recorder import inverse_input
from takeback_core.undo.rows import Row
from takeback_core.undo.running import Running, RunningStep
from takeback_core.undo.runs import RunRecord, RunSubject, finish, release, standing_counters
from takeback_core.undo.steps import Draft, PlannedStep

# A run that outlives its lease has died or hangs; only another daemon on the same database would ask.
_LEASE = timedelta(minutes=10)


@dataclass(slots=True)
class Run:
    """One undo under way: its own row, what it is to change, and the steps that have run."""

    id: str
    record: RunRecord
    ran: list[PlannedStep] = field(default_factory=list)
    failing: PlannedStep | None = None


class Runner:
    """Executes drafts: claims the acts, runs each inverse confined to what its act touched, verifies."""

    def __init__(
        self, store: Store, inverses: InverseCheck, running: Running, boot: str, step_seconds: float
    ) -> None:
        self._store = store
        self._inverses = inverses
        self._running = running
        self._boot = boot
        self._step_seconds = step_seconds
        # Undos of this process that could be neither finished nor put back yet; the settler tries again.
        self.held: set[str] = set()

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
    ) -> Outcome:
        """Run the steps of a draft that can run; raises `undo.failed` when one fails, with all as before."""
        faults.point("undo.claiming")
        record = _record(chosen, draft)
        if key is not None:
            record.asked, record.plan = asked, draft.plan
        run = await self._claim(ctx, chosen, record, _run_row(ctx, record, tool, summary, actor_kind, key))
        faults.point("undo.claimed")
        try:
            for step in draft.steps:
                if step.runs and not step.idle:
                    run.failing = step
                    await self._reverse(ctx, run, step)
            run.failing = None
            await self._verify(ctx, run, draft)
        except Exception as error:
            known = error if isinstance(error, TakebackError) else _crash(error)
            as_before = await self._give_up(ctx, run, known)
            raise _failed(run, known, as_before) from error
        faults.point("undo.finishing")
        await self._store.transaction(lambda tx: finish(tx, run.id, run.record, ctx.origin))
        faults.point("undo.finished")
        return Outcome(plan=draft.plan, results=results_of(run.record), act=run.id)

    async def put_back(self, ctx: Context, run_id: str, actor: str) -> None:
        """Run the counters of an undo that can't be finished, newest first, each that can be run.

        Raises what the first that can't raises.
        """
        counters = await self._store.read(lambda db: standing_counters(db, run_id))
        failures: list[Exception] = []
        for row in counters:
            faults.point("undo.putting_back")
            expected = {item.resource: item.after for item in row.touched}
            try:
                await self._invert(ctx, run_id, row, expected, actor)
            except Exception as error:
                failures.append(error)
                continue
            await self._store.transaction(lambda tx, row=row: rows.update(tx, row.id, state="undone"))  # type: ignore[misc]
            faults.point("undo.put_back")
        if failures:
            # What time won't mend is the one to hear of.
            raise next((error for error in failures if not may_pass(error)), failures[0])

    # ------------------------------------------------------------------ one run, step by step

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
        force = step.step.forced
        await self._invert(ctx, run.id, step.row, step.expected, ctx.origin, force=force, only=step.only)
        run.ran.append(step)
        faults.point("undo.stepped")

    async def _invert(
        self,
        ctx: Context,
        run_id: str,
        row: Row,
        expected: dict[str, str],
        actor: str,
        *,
        force: bool = False,
        only: list[str] | None = None,
    ) -> None:
        """Run a row's inverse, byte for byte as stored, confined to what the row touched or `only` a part."""
        assert row.inverse_tool is not None
        given = inverse_input(row, only)
        self._inverses.check(row.inverse_tool, given)
        call = ctx.calls[-1]
        self._running.set(call, RunningStep(run_id, row.id, actor))
        try:
            with anyio.move_on_after(self._step_seconds):
                await ctx.call(row.inverse_tool, given, as_=RUNS_AS, confined_to_=expected, force_=force)
                return
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # The inverse waited for something of its own that was cancelled; nobody cancelled this undo.
            raise TakebackError(
                "undo.step_cancelled", f"{row.inverse_tool} was cancelled from inside"
            ) from None
        finally:
            self._running.clear(call)
        raise TakebackError(
            "undo.step_deadline",
            f"{row.inverse_tool} did not end within {self._step_seconds:g} s and was cancelled",
            "Other undos wait for it, so it can't go on for ever; [undo] step_seconds says how long it may.",
            retryable=True,
        )

    async def _verify(self, ctx: Context, run: Run, draft: Draft) -> None:
        """Compare the resources with what the plan promised, before anything is reported done."""
        faults.point("undo.verifying")
        promised = draft.predicted()
        now = await versions(ctx, promised)
        for name, version in promised.items():
            if now is not None and now.get(name, version) != version:
                run.failing = next((step for step in run.ran if name in step.predicted), None)
                raise ConflictError(
                    "undo.not_as_planned",
                    f"{name:.500} is not as the plan promised",
                    "Somebody changed it at the same moment. Look at the preview again.",
                )

    async def _give_up(self, ctx: Context, run: Run, error: TakebackError) -> bool:
        """Put back what ran and let the acts go, the failing one with the error; whether all is as before."""
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
        countered = {row.subject for row in children if row.state in ("done", "abandoned")}
        ran = [step for step in run.ran if step.row.id not in countered]
        left: set[str | None] = {s.row.id for s in ran if await _look(ctx, s.expected) != s.expected}
        # An owner that refuses has changed nothing; of one that failed its resources tell, if it has any.
        refused = isinstance(error, ConflictError | RefusedError)
        if run.failing is not None and not refused and run.failing.row.id not in countered:
            now = await _look(ctx, run.failing.expected)
            if now is not None and now != run.failing.expected:
                left.add(run.failing.row.id)
        return left


def may_pass(error: Exception) -> bool:
    """Whether an error is one of the kind that time mends: a full disk, a module that is off."""
    return isinstance(error, TakebackError) and error.retryable and error.kind == "failed"


async def _look(ctx: Context, names: Iterable[str]) -> dict[str, str] | None:
    try:
        return await versions(ctx, names) or None
    except TakebackError:
        return None


def results_of(record: RunRecord) -> list[Result]:
    """What becomes of the acts of an undo; one of which a part was reversed keeps its state."""
    return [
        Result(
            id=one.id,
            state=one.was if one.part else record.sets,  # type: ignore[arg-type]
            already=bool(one.part) and record.sets == "done" and record.left.keys() >= set(one.needs),
            part=bool(one.part),
        )
        for one in record.subjects
    ]


def _record(chosen: Chosen, draft: Draft) -> RunRecord:
    running = {step.row.id: step for step in draft.steps if step.runs}
    return RunRecord(
        order=list(running),
        left={row_id: step.expected for row_id, step in running.items() if step.idle},
        subjects=[
            RunSubject(
                id=one.row.id,
                was=one.row.state,
                needs=sorted(one.needs),
                part=_part(chosen, one, [running[need] for need in one.needs]),
            )
            for one in chosen.subjects
            if one.needs <= running.keys()
        ],
        sets=chosen.sets,
        started=draft.started(),
        predicted=draft.predicted(),
        parts={row_id: step.only for row_id, step in running.items() if step.only is not None},
    )


def _part(chosen: Chosen, subject: Subject, steps: list[PlannedStep]) -> list[str]:
    """The resources of an act that these steps reverse, when that is not all there is to it."""
    if chosen.sets != "undone":
        return list(subject.part)
    standing = {item.resource for item in subject.row.touched} - subject.row.taken.keys()
    reversed_ = standing & {item.resource for step in steps for item in step.items}
    in_part = subject.part or not subject.whole or any(step.step.part for step in steps)
    return sorted(reversed_) if in_part and standing - reversed_ else []


def _run_row(
    ctx: Context, record: RunRecord, tool: str, summary: str, kind: str, key: str | None
) -> dict[str, Any]:
    caller = Caller.parse(ctx.origin)
    return {
        "id": rows.new_id(),
        "at": moments.stamp(),
        "actor": ctx.origin,
        "via": ctx.caller,
        "recorded_by": "module:undo",
        "actor_kind": kind,
        "agent": caller.name if caller.kind == "agent" else None,
        "session": ctx.session,
        "turn": ctx.turn,
        "path": "/".join(ctx.calls),
        "role": "undo",
        "tool": tool,
        "input": record.model_dump_json(),
        "summary": summary,
        "why": "[]",
        "state": "pending",
        "tries": 0,
        "run_key": key,
        "pinned": 0,
    }


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
