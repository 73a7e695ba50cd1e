"""The runner: executes a plan, all of it or nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from takeback import faults
from takeback.callers import Caller
from takeback.context import Context
from takeback.errors import ConflictError, TakebackError
from takeback.store import Store, Transaction
from takeback_core.undo import rows
from takeback_core.undo.happenings import UndoDone, UndoFailed
from takeback_core.undo.inverse import RUNS_AS, InverseCheck
from takeback_core.undo.looking import versions
from takeback_core.undo.models import Outcome, Result
from takeback_core.undo.planner import Draft, PlannedStep
from takeback_core.undo.recorder import inverse_input
from takeback_core.undo.rows import Row, RunRecord, RunSubject
from takeback_core.undo.running import Running, RunningStep
from takeback_core.undo.selection import Chosen, Subject

# A run that outlives its lease has died or hangs; only another daemon on the same database would ask.
_LEASE = timedelta(minutes=10)


@dataclass(slots=True)
class Run:
    """One undo under way: its own row, what it is to change, and the steps that have run."""

    id: str
    seq: int
    record: RunRecord
    subjects: list[Subject]
    chosen: Chosen
    ran: list[PlannedStep] = field(default_factory=list)
    failing: PlannedStep | None = None


class Runner:
    """Executes drafts: claims the acts, runs each inverse confined to what its act touched, verifies."""

    def __init__(self, store: Store, inverses: InverseCheck, running: Running, boot: str) -> None:
        self._store = store
        self._inverses = inverses
        self._running = running
        self._boot = boot

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
    ) -> Outcome:
        """Run the steps of a draft that can run; raises `undo.failed` when one fails, with all as before."""
        faults.point("undo.claiming")
        run = await self._claim(ctx, chosen, draft, tool, summary, actor_kind, key)
        faults.point("undo.claimed")
        try:
            for step in draft.steps:
                if step.runs and not step.idle:
                    run.failing = step
                    await self._reverse(ctx, run, step)
            run.failing = None
            await self._verify(ctx, draft)
        except Exception as error:
            known = error if isinstance(error, TakebackError) else _crash(error)
            await self._give_up(ctx, run, known)
            raise _failed(run, known) from error
        faults.point("undo.finishing")
        await self._store.transaction(lambda tx: finish(tx, run.id, run.record, ctx.caller))
        faults.point("undo.finished")
        state: Any = run.record.sets
        results = [Result(id=one.row.id, state=state, already=False) for one in run.subjects]
        return Outcome(plan=draft.plan, results=results, act=run.id)

    async def put_back(self, ctx: Context, run_id: str, actor: str) -> None:
        """Run the counters of an undo that can't be finished, newest first; raises what an inverse raises."""
        counters = await self._store.read(lambda db: standing_counters(db, run_id))
        for row in counters:
            faults.point("undo.putting_back")
            await self._invert(ctx, run_id, row, {item.resource: item.after for item in row.touched}, actor)
            await self._store.transaction(lambda tx, row=row: rows.update(tx, row.id, state="undone"))  # type: ignore[misc]
            faults.point("undo.put_back")

    # ------------------------------------------------------------------ one run, step by step

    async def _claim(
        self, ctx: Context, chosen: Chosen, draft: Draft, tool: str, summary: str, kind: str, key: str | None
    ) -> Run:
        runs = {step.row.id for step in draft.steps if step.runs}
        subjects = [one for one in chosen.subjects if one.needs <= runs]
        record = RunRecord(
            steps=[step.row.id for step in draft.steps if step.runs and not step.idle],
            subjects=[RunSubject(id=s.row.id, was=s.row.state, needs=sorted(s.needs)) for s in subjects],
            sets=chosen.sets,
            undoes=chosen.undoes.id if chosen.undoes else None,
            predicted=draft.predicted(),
        )
        row = _run_row(ctx, record, tool, summary, kind, key, self._boot)

        def claim(tx: Transaction) -> int:
            for subject in subjects:
                self._claim_one(tx, subject.row, row["id"], chosen.sets)
            return rows.insert(tx, row, ())

        seq = await self._store.transaction(claim)
        return Run(row["id"], seq, record, subjects, chosen)

    def _claim_one(self, tx: Transaction, row: Row, run_id: str, sets: str) -> None:
        now = rows.one(tx, row.id)
        if now is None or now.state != row.state:
            raise ConflictError(
                "undo.changed", "The log has changed since the plan was made", "Look again and retry."
            )
        until = rows.iso(datetime.now(UTC) + _LEASE)
        rows.update(
            tx, row.id, state="undoing", lease_owner=self._boot, lease_until=until, tries=now.tries + 1
        )
        if sets == "undone":
            rows.update(tx, row.id, undone_in=run_id)

    async def _reverse(self, ctx: Context, run: Run, step: PlannedStep) -> None:
        faults.point("undo.step")
        await self._invert(ctx, run.id, step.row, step.expected, ctx.caller, force=step.forced)
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
    ) -> None:
        """Run a row's inverse, byte for byte as stored, confined to what the row touched."""
        assert row.inverse_tool is not None
        given = inverse_input(row)
        self._inverses.check(row.inverse_tool, given)
        call = ctx.calls[-1]
        self._running.set(call, RunningStep(run_id, row.id, actor))
        try:
            await ctx.call(row.inverse_tool, given, as_=RUNS_AS, confined_to_=expected, force_=force)
        finally:
            self._running.clear(call)

    async def _verify(self, ctx: Context, draft: Draft) -> None:
        """Compare the resources with what the plan promised, before anything is reported done."""
        faults.point("undo.verifying")
        promised = draft.predicted()
        now = await versions(ctx, promised)
        for name, version in promised.items():
            if now is not None and now.get(name, version) != version:
                raise ConflictError(
                    "undo.not_as_planned",
                    f"{name:.500} is not as the plan promised",
                    "Somebody changed it at the same moment. Look at the preview again.",
                )

    async def _give_up(self, ctx: Context, run: Run, error: TakebackError) -> None:
        """Put back what ran and let the acts go, with the error on the one that failed."""
        stuck = ""
        try:
            await self.put_back(ctx, run.id, ctx.caller)
        except Exception as second:
            stuck = type(second).__name__ if not isinstance(second, TakebackError) else second.code
        failing = run.failing.row if run.failing else (run.ran[-1].row if run.ran else None)

        def let_go(tx: Transaction) -> None:
            release(tx, run.id, run.record, failing, error, stuck)

        await self._store.transaction(let_go)
        faults.point("undo.gave_up")


def standing_counters(db: rows.Database, run_id: str) -> list[Row]:
    """What an undo's inverses recorded and nobody has put back, newest first."""
    counters = [row for row in rows.children(db, run_id) if row.role == "counter"]
    inner = {row.id for row in counters}
    return [row for row in counters if row.state == "done" and row.subject not in inner]


def finish(tx: Transaction, run_id: str, record: RunRecord, by: str, reason: str | None = None) -> None:
    """Give the acts of an undo their new state, and say so."""
    for subject in record.subjects:
        if record.sets == "undone":
            rows.update(
                tx,
                subject.id,
                state="undone",
                undone_at=rows.now(),
                undone_by=by,
                undone_in=run_id,
                error=None,
                **_FREE,
            )
        else:
            rows.update(
                tx,
                subject.id,
                state="done",
                undone_at=None,
                undone_by=None,
                undone_in=None,
                error=None,
                **_FREE,
            )
        tx.emit(UndoDone(id=subject.id))
    rows.update(tx, run_id, state="done", reason=reason, **_FREE)
    if record.undoes is not None:
        _close_undone_run(tx, record.undoes, run_id, by)


def release(
    tx: Transaction,
    run_id: str,
    record: RunRecord,
    failing: Row | None,
    error: TakebackError | None,
    stuck: str = "",
    reason: str | None = None,
) -> None:
    """Let the acts of an undo that did not happen go: as they were, the failing one with its error.

    With `stuck`, something could not be put back: those whose inverses still stand are `unknown`.
    """
    left = {row.subject for row in standing_counters(tx, run_id)} if stuck else set()
    failed = None if failing is None or error is None else _subject_of(record, failing)
    for subject in record.subjects:
        state = subject.was if not left & set(subject.needs) else "unknown"
        changes: dict[str, Any] = {"state": state, **_FREE}
        if record.sets == "undone":
            changes["undone_in"] = None
        if failed is not None and subject.id == failed and error is not None:
            changes |= {"error": rows.error_text(error.as_dict())}
            if state == "done":
                changes["state"] = "failed"
            tx.emit(UndoFailed(id=subject.id))
        rows.update(tx, subject.id, **changes)
    text = None if error is None else rows.error_text(error.as_dict())
    rows.update(
        tx,
        run_id,
        state="unknown" if stuck else "abandoned",
        error=text,
        reason=reason or stuck or None,
        **_FREE,
    )


_FREE: dict[str, Any] = {"lease_owner": None, "lease_until": None}


def _close_undone_run(tx: Transaction, undone: str, by_run: str, by: str) -> None:
    """An undo of which every act has been redone is itself undone."""
    record = rows.run_record(rows.one(tx, undone) or _missing(undone))
    held = [rows.one(tx, subject.id) for subject in record.subjects]
    if record.sets == "undone" and any(row is not None and row.undone_in == undone for row in held):
        return
    rows.update(tx, undone, state="undone", undone_at=rows.now(), undone_by=by, undone_in=by_run)


def _missing(row_id: str) -> Row:
    raise LookupError(row_id)


def _subject_of(record: RunRecord, failing: Row) -> str | None:
    """The act to blame: the one whose own row failed, else the first that needed it."""
    names = [subject.id for subject in record.subjects if failing.id in subject.needs]
    return failing.id if failing.id in names else (names[0] if names else None)


def _run_row(
    ctx: Context, record: RunRecord, tool: str, summary: str, kind: str, key: str | None, boot: str
) -> dict[str, Any]:
    caller = Caller.parse(ctx.caller)
    return {
        "id": rows.new_id(),
        "at": rows.now(),
        "actor": ctx.caller,
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
        "lease_owner": boot,
        "pinned": 0,
    }


def _crash(error: Exception) -> TakebackError:
    return TakebackError("undo.crashed", f"The undo ended unexpectedly ({type(error).__name__})")


def _failed(run: Run, error: TakebackError) -> TakebackError:
    what = run.failing.step.summary if run.failing else "The undo"
    kind = ConflictError if isinstance(error, ConflictError) else TakebackError
    return kind(
        "undo.failed",
        f"{what}: this could not be taken back: {error.message}",
        f"{error.hint} Everything is as it was before.".strip(),
        retryable=True,
        data={"act": run.failing.step.act if run.failing else None, "cause": error.code},
    )
