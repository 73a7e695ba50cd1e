"""The inverter: runs inverses one by one, and puts back what they did where an undo can't be finished."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio

from takeback import faults
from takeback.context import Context
from takeback.errors import TakebackError
from takeback.joint import Joint
from takeback.store import Store
from takeback_core.undo import rows
from takeback_core.undo.inverse import RUNS_AS, InverseCheck
from takeback_core.undo.recorder import Recorder, inverse_input
from takeback_core.undo.rows import Row
from takeback_core.undo.running import Running, RunningStep
from takeback_core.undo.runs import note_put_back, standing_counters

_CUT_OFF = frozenset({"call.crashed", "undo.step_cancelled", "undo.step_deadline"})


class Inverter:
    """Runs inverses, each confined to what its row touched, in a joint."""

    def __init__(
        self,
        store: Store,
        inverses: InverseCheck,
        recorder: Recorder,
        running: Running,
        boot: str,
        step_seconds: float,
    ) -> None:
        self._store = store
        self._inverses = inverses
        self._recorder = recorder
        self._running = running
        self._boot = boot
        self._step_seconds = step_seconds
        # Undos of this process that could be neither finished nor put back yet; the settler tries again.
        self.held: set[str] = set()

    async def put_back(self, ctx: Context, run_id: str, actor: str) -> None:
        """Run the counters of an undo that can't be finished, newest first, each that can be run.

        Raises what the first that can't raises.
        """
        counters = await self._store.read(lambda db: standing_counters(db, run_id))
        failures: list[Exception] = []
        joint, waiting = Joint(), list[Row]()
        try:
            for row in counters:
                faults.point("undo.putting_back")
                expected = {item.resource: item.after for item in row.touched}
                try:
                    await self._invert(ctx, run_id, row, expected, actor, joint)
                except Exception as error:
                    failures.append(error)
                    continue
                waiting += await self._store.transaction(lambda tx, row=row: note_put_back(tx, run_id, [row]))  # type: ignore[misc]
                faults.point("undo.put_back")
            await _end(joint, failures)
        finally:
            await joint.rollback()
        if waiting:
            failures += await self._await_word(ctx, run_id, waiting, known=bool(failures))
        if failures:
            # What time won't mend is the one to hear of.
            raise next((error for error in failures if not may_pass(error)), failures[0])

    async def _hear(self, ctx: Context, run_id: str) -> bool:
        """Ask what became of the steps whose owner has not said; whether it is known of all of them."""
        own = ctx._replace(scope=None, joint=None)
        children = await self._store.read(lambda db: rows.children(db, run_id))
        try:
            for row in children:
                if row.state == "pending" and not await self._recorder.hear(own, row):
                    return False
        except TakebackError:
            return False
        return True

    async def _await_word(
        self, ctx: Context, run_id: str, counters: list[Row], *, known: bool
    ) -> list[Exception]:
        """Note which of these were put back, now that the joint they were put back in has ended."""
        if not await self._hear(ctx, run_id):
            return [_unheard()]
        left = await self._store.transaction(lambda tx: note_put_back(tx, run_id, counters, ended=True))
        return [_not_put_back(left[0])] if left and not known else []

    async def _invert(
        self,
        ctx: Context,
        run_id: str,
        row: Row,
        expected: dict[str, str],
        actor: str,
        joint: Joint,
        *,
        force: bool = False,
        only: list[str] | None = None,
    ) -> None:
        """Run a row's inverse, byte for byte as stored, confined to what the row touched or `only` a part."""
        assert row.inverse_tool is not None
        given = inverse_input(row, only)
        self._inverses.check(row.inverse_tool, given)
        limits = {"confined_to_": expected, "force_": force, "joint_": joint}
        call, visits = ctx.calls[-1], joint.visits
        self._running.set(call, RunningStep(run_id, row.id, actor))
        try:
            await self._call(ctx, row.inverse_tool, given, limits)
        except BaseException as error:
            if joint.visits > visits and not _is_foreseen(error):
                joint.spoil()
            raise
        finally:
            self._running.clear(call)

    async def _call(self, ctx: Context, tool: str, given: dict[str, Any], limits: dict[str, Any]) -> None:
        try:
            with anyio.move_on_after(self._step_seconds):
                await ctx.call(tool, given, as_=RUNS_AS, **limits)
                return
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # The inverse waited for something of its own that was cancelled; nobody cancelled this undo.
            raise TakebackError("undo.step_cancelled", f"{tool} was cancelled from inside") from None
        raise TakebackError(
            "undo.step_deadline",
            f"{tool} did not end within {self._step_seconds:g} s and was cancelled",
            "Other undos wait for it, so it can't go on for ever; [undo] step_seconds says how long it may.",
            retryable=True,
        )


def may_pass(error: Exception) -> bool:
    """Whether an error is one of the kind that time mends: a full disk, a module that is off."""
    return isinstance(error, TakebackError) and error.retryable and error.kind == "failed"


def _is_foreseen(error: BaseException) -> bool:
    """Whether an inverse said no by itself, in which case it has left its transaction as it found it."""
    return isinstance(error, TakebackError) and error.code not in _CUT_OFF


async def _end(joint: Joint, failures: list[Exception]) -> None:
    """Commit what could be put back; what the owners say against it is one of the failures."""
    try:
        await joint.prepare()
        await joint.commit()
    except Exception as error:
        failures.append(error)


def _unheard() -> TakebackError:
    return TakebackError(
        "undo.not_told",
        "A module can't say yet what became of what it was to put back",
        "It is asked again before the next undo, and at the next start.",
        retryable=True,
    )


def _not_put_back(row: Row) -> TakebackError:
    return TakebackError("undo.not_put_back", f"{row.summary:.250}: its module did not put it back")
