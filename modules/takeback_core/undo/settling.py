"""Settling after a crash: every act and every undo that was cut off gets its true state, by looking."""

from __future__ import annotations

from contextlib import suppress

from takeback.context import Context
from takeback.errors import ConflictError, RefusedError, TakebackError
from takeback.store import Store, Transaction
from takeback_core.undo import rows
from takeback_core.undo.inverter import may_pass
from takeback_core.undo.looking import versions
from takeback_core.undo.models import ActState, State, Touched
from takeback_core.undo.recorder import Recorder
from takeback_core.undo.rows import Row
from takeback_core.undo.runner import Runner
from takeback_core.undo.runs import RunRecord, release, run_record, standing_counters


class Settler:
    """Settles what earlier processes left open; rows of this one are not its business."""

    def __init__(self, store: Store, recorder: Recorder, runner: Runner) -> None:
        self._store = store
        self._recorder = recorder
        self._runner = runner
        self._newest = 0

    async def look_back(self) -> None:
        """Note the newest row: everything pending up to it belongs to a process that is gone."""
        self._newest = await self._store.read(
            lambda db: int(db.execute("SELECT coalesce(max(seq), 0) FROM undo_acted").fetchone()[0])
        )

    async def settle(self, ctx: Context) -> None:
        """Settle every open row whose owner can be asked; the others wait until it runs."""
        for row in await self._open("act", "counter"):
            await self._try_act(ctx, row)
        for row in [*await self._open("undo"), *await self._held()]:
            try:
                settled = await self._settle_run(ctx, row)
            except TakebackError as error:
                settled = not may_pass(error)
                if settled:
                    await self._give_up(row, error)
            if settled:
                self._runner.held.discard(row.id)

    async def _open(self, *roles: str) -> list[Row]:
        marks = ", ".join("?" * len(roles))
        where = f"a.state = 'pending' AND a.state <> 'done' AND a.seq <= ? AND a.role IN ({marks})"
        return await self._store.read(lambda db: rows.many(db, where, [self._newest, *roles]))

    async def _held(self) -> list[Row]:
        """Undos of this process that wait to be finished or put back, their counters settled first."""
        ids = sorted(self._runner.held)
        found = await self._store.read(lambda db: [row for one in ids if (row := rows.one(db, one))])
        self._runner.held -= {row.id for row in found if row.state != "pending"}
        return [row for row in found if row.state == "pending" and row.seq > self._newest]

    async def _try_act(self, ctx: Context, row: Row) -> None:
        """One act whose owner can't tell yet must not keep the others waiting."""
        with suppress(TakebackError):
            await self._recorder.hear(ctx, row)

    async def _settle_run(self, ctx: Context, row: Row) -> bool:
        """Finish an undo of which every step has run, take any other back; false while an owner is away."""
        record = run_record(row)
        counters = await self._store.read(lambda db: rows.children(db, row.id))
        for counter in counters:
            if counter.state == "pending" and row.id in self._runner.held:
                await self._try_act(ctx, counter)
        counters = await self._store.read(lambda db: rows.children(db, row.id))
        if any(counter.state == "pending" for counter in counters):
            return False
        if any(counter.state == "unknown" for counter in counters):
            await self._store.transaction(lambda tx: _hide(tx, row.id, record))
            return True
        now = await versions(ctx, record.started | record.predicted)
        if now is None:
            return False
        when = "later" if row.id in self._runner.held else "after a restart"
        stands = await self._without_counter(record, counters, now)
        if await self._is_complete(record, counters, stands, now):
            by, why = row.actor, f"finished {when}"
            await self._runner.ending.end(row.id, record, by, why)
            return True
        within = ctx._replace(calls=(*ctx.calls, f"settle-{row.id}"))
        await self._runner.put_back(within, row.id, row.actor)
        why = "an inverse that ran recorded no way back" if stands else f"taken back {when}"
        await self._store.transaction(
            lambda tx: release(tx, row.id, record, None, None, stands=stands, reason=why)
        )
        return True

    async def _is_complete(
        self, record: RunRecord, counters: list[Row], stands: set[str | None], now: dict[str, str]
    ) -> bool:
        inner = {counter.id for counter in counters}
        if any(counter.subject in inner for counter in counters):
            return False  # somebody had begun to put it back
        done = [counter for counter in counters if counter.state == "done"]
        if not set(record.steps) <= {counter.subject for counter in done} | stands:
            return False
        # A step before the last one is through; of the last one its counters must tell.
        last = await self._store.read(lambda db: rows.one(db, record.steps[-1]) if record.steps else None)
        covered = {item.resource for one in done for item in one.touched if last and one.subject == last.id}
        return last is None or {item.resource for item in record.reversed(last)} <= covered | {
            name for name, version in record.predicted.items() if now.get(name) == version
        }

    async def _without_counter(
        self, record: RunRecord, counters: list[Row], now: dict[str, str]
    ) -> set[str | None]:
        """The steps that ran without recording what would put them back, as far as resources tell."""
        countered = {counter.subject for counter in counters}
        moved = {item.resource for counter in counters for item in counter.touched}
        steps = await self._store.read(lambda db: [rows.one(db, step) for step in record.steps])
        through = 0
        for number, row in enumerate(steps, 1):
            if row is None:
                continue
            touched = record.reversed(row)
            alone = moved.isdisjoint(item.resource for item in touched)
            if row.id in countered or (alone and _was_reversed(touched, record.started, now)):
                through = number
        ran: set[str | None] = {row.id for row in steps[:through] if row is not None}
        return ran - countered

    async def _give_up(self, row: Row, error: TakebackError) -> None:
        record = run_record(row)

        def hide(tx: Transaction) -> None:
            stands = {counter.subject for counter in standing_counters(tx, row.id)}
            release(tx, row.id, record, None, error, stands=stands, reason=error.code)

        await self._store.transaction(hide)


def _was_reversed(touched: list[Touched], started: dict[str, str], now: dict[str, str]) -> bool:
    changed = any(now.get(item.resource) != started.get(item.resource) for item in touched)
    return changed and all(now.get(item.resource) == item.before for item in touched)


def _hide(tx: Transaction, run_id: str, record: RunRecord) -> None:
    every = {need for subject in record.subjects for need in subject.needs}
    release(tx, run_id, record, None, None, stands=every, reason="a crash hid its outcome")


def settle_by_word(tx: Transaction, row: Row, happened: bool) -> ActState:
    """The person's word on an act that is `unknown`, and with the last such act on the undo that hid it.

    Raises ConflictError `undo.settled` for other acts, RefusedError `undo.not_an_act` for an undo.
    """
    if row.role != "act":
        raise RefusedError(
            "undo.not_an_act", f"{row.id} is an undo, and settled with its acts", "Settle each of its acts."
        )
    if row.state != "unknown":
        raise ConflictError("undo.settled", f"Act {row.id} is {row.state}, so there is nothing to settle")
    closed = row.inverse_tool is None or row.reason == rows.EDITED
    reason = row.reason if closed else "settled by the person"
    state: State = "abandoned"
    if happened:
        state = "final" if closed else "done"
    rows.update(tx, row.id, state=state, reason=reason, undone_in=None, redone_in=None)
    for run in (row.undone_in, row.redone_in):
        if run is not None:
            _settle_hidden(tx, run)
    return ActState(id=row.id, state=state)


def _settle_hidden(tx: Transaction, run_id: str) -> None:
    run = rows.one(tx, run_id)
    if run is None or run.state != "unknown":
        return
    held = [rows.one(tx, subject.id) for subject in run_record(run).subjects]
    if not any(row is not None and row.state == "unknown" for row in held):
        rows.update(tx, run_id, state="abandoned", reason="settled by the person")
