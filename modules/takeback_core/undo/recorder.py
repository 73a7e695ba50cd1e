"""Recording: what was done, by whom, and how to reverse it."""

from __future__ import annotations

from typing import Any, NamedTuple

from pydantic_core import from_json

from takeback import faults, moments
from takeback.callers import Caller
from takeback.context import Context
from takeback.errors import RefusedError, UsageError
from takeback.store import Job, Store, Transaction
from takeback_core.undo import early, resources, rows
from takeback_core.undo.actors import Actors, unknown_act
from takeback_core.undo.happenings import UndoRecorded
from takeback_core.undo.inverse import InverseCheck
from takeback_core.undo.models import ActState, ConfirmAct, RecordAct, Recorded, State, Touched
from takeback_core.undo.running import Running
from takeback_core.undo.witness import Told, can_tell, tell

_MANY_UNSURE = 256


class _Begun(NamedTuple):
    """An act begun since the start: by whom, its state once it stands, and what is then told.

    `foreseen` tells whether it was said what it would touch.
    """

    by: str
    standing: State
    told: UndoRecorded | None
    foreseen: bool


class Recorder:
    """Writes rows of the acted-log for the modules that acted."""

    def __init__(self, store: Store, actors: Actors, inverses: InverseCheck, running: Running) -> None:
        self._store = store
        self._actors = actors
        self._inverses = inverses
        self._running = running
        self._begun_here: dict[str, _Begun] = {}
        self._unsure: dict[str, Job[ActState]] = {}

    async def add(self, ctx: Context, args: RecordAct, state: str) -> Recorded:
        """Insert a row in one durable transaction; raises what `InverseCheck.check` raises."""
        row = await self._row(ctx, args, state)

        def insert(tx: Transaction) -> None:
            if row["parent"] is None and "/" in row["path"]:
                parent = rows.parent_of(tx, row["path"].split("/"))
                row["parent"] = parent and parent.id
            rows.insert(tx, row, args.touched, args.blobs)
            rows.adopt(tx, row["id"], row["path"])
            if state != "pending":
                self._tell(tx, row)

        faults.point("undo.recording")
        await self._store.transaction(insert, durable=early.asked())
        faults.point("undo.recorded")
        if state == "pending":
            standing: State = "final" if args.inverse_tool is None else "done"
            self._begun_here[row["id"]] = _Begun(ctx.caller, standing, _happening(row), bool(args.touched))
        return Recorded(id=row["id"])

    async def confirm(self, ctx: Context, args: ConfirmAct) -> ActState:
        """Make a begun act `done`; only for the module that began it.

        It is not waited for where a crash may swallow it: readers see it, and the next start finds out again,
        since the intent is durable: by looking where it only says so, and where it says what was touched, by
        asking an owner that can tell.
        """
        faults.point("undo.confirming")
        begun = self._begun_here.pop(args.id, None)
        if len(self._unsure) > _MANY_UNSURE:
            self._unsure = {key: job for key, job in self._unsure.items() if not job.settled or job.error}
        if begun is not None and begun.by == ctx.caller:
            if args.model_fields_set == {"id"}:
                return self._confirm_soon(args.id, begun)
            if begun.standing == "done" and _is_found_again(ctx, args):
                _check_touched(ctx, args)
                return self._confirm_soon(args.id, begun, args)
        answer = await self._store.transaction(lambda tx: self._confirm(tx, ctx, args))
        faults.point("undo.confirmed")
        return answer

    def _confirm(self, tx: Transaction, ctx: Context, args: ConfirmAct) -> ActState:
        row = self._begun(tx, ctx, args.id)
        if row.state != "pending":
            return ActState(id=row.id, state=row.state)  # type: ignore[arg-type]
        if args.inverse_input is not None and row.inverse_tool is not None:
            self._inverses.check(row.inverse_tool, args.inverse_input)
            rows.update(tx, row.id, inverse_input=rows.dumps(args.inverse_input))
        _check_touched(ctx, args)
        if args.blobs is not None:
            rows.replace_blobs(tx, row.seq, args.blobs)
        return self.settle(tx, row, Told("done", args.touched, args.summary))

    def _confirm_soon(self, row_id: str, begun: _Begun, facts: ConfirmAct | None = None) -> ActState:
        answer = ActState(id=row_id, state=begun.standing)

        def confirm(tx: Transaction) -> ActState:
            seq = rows.confirm(tx, row_id, begun.standing, facts.summary if facts else None)
            if seq is not None:
                if facts is not None and facts.touched is not None:
                    rows.replace_touched(tx, seq, facts.touched, foreseen=begun.foreseen)
                if begun.told is not None:
                    tx.emit(begun.told)
            return answer

        self._unsure[row_id] = self._store.submit(confirm, ride=True)
        return answer

    async def confirm_again(self) -> None:
        """Repeat confirmations that the store could not take, such as when the disk was full."""
        for row_id, job in list(self._unsure.items()):
            if not job.settled:
                continue
            del self._unsure[row_id]
            if job.error is not None:
                again = self._unsure[row_id] = self._store.submit(job.fn)
                await again.fate()

    async def hear(self, ctx: Context, row: rows.Row) -> bool:
        """Settle a pending row by its owner's word; false while that is away. Raises what `tell` raises."""
        told = await tell(ctx, row)
        if told is not None:
            faults.point("undo.settling")
            await self._store.transaction(lambda tx: self.settle(tx, row, told))
        return told is not None

    def settle(self, tx: Transaction, row: rows.Row, told: Told) -> ActState:
        """Give a pending row its state and what was told of it, and tell of it when its effect stands.

        One that has been settled since it was read keeps what it has.
        """
        closed = row.reason == rows.EDITED or (row.inverse_tool is None and row.reason is not None)
        final = told.state == "done" and closed
        state: State = "final" if final else told.state
        if not rows.stands(tx, row.id, state):
            now = rows.one(tx, row.id)
            return ActState(id=row.id, state=state if now is None else now.state)  # type: ignore[arg-type]
        rows.correct(tx, row.id, told.touched, told.summary)
        if state in ("done", "final"):
            self._tell(tx, {name: getattr(row, name) for name in ("id", "role", "actor_kind", "tool")})
        return ActState(id=row.id, state=state)

    async def begun(self, ctx: Context, row_id: str) -> rows.Row:
        """A row that the calling module began; raises `undo.unknown_act`."""
        self._begun_here.pop(row_id, None)
        return await self._store.read(lambda db: self._begun(db, ctx, row_id))

    def _begun(self, db: rows.Database, ctx: Context, row_id: str) -> rows.Row:
        row = rows.one(db, row_id)
        if row is None or row.recorded_by != ctx.caller:
            raise unknown_act(row_id)
        return row

    async def _row(self, ctx: Context, args: RecordAct, state: str) -> dict[str, Any]:
        self._check(ctx, args)
        path = "/".join(ctx.calls[:-1])
        row: dict[str, Any] = {
            "id": rows.new_id(),
            "at": moments.stamp(),
            "actor": ctx.origin,
            "via": ctx.chain[-2] if len(ctx.chain) > 1 else ctx.caller,
            "recorded_by": ctx.caller,
            "session": ctx.session,
            "turn": ctx.turn,
            "parent": None,
            "path": path,
            "role": "act",
            "tool": args.tool,
            "input": rows.dumps(args.input),
            "summary": args.summary,
            "inverse_tool": args.inverse_tool,
            "inverse_input": None if args.inverse_tool is None else rows.dumps(args.inverse_input),
            "why": rows.dumps([*ctx.why, *args.why]),
            "state": "final" if state == "done" and args.inverse_tool is None else state,
            "reason": args.final_reason,
            "tries": 0,
            "pinned": 0,
        }
        if step := self._running.step(ctx.calls):
            row |= {"parent": step.run, "role": "counter", "subject": step.row, "actor": step.actor}
        caller = Caller.parse(row["actor"])
        row["actor_kind"] = await self._actors.kind(caller)
        row["agent"] = caller.name if caller.kind == "agent" else None
        return row

    def _check(self, ctx: Context, args: RecordAct) -> None:
        if (args.inverse_tool is None) == (args.final_reason is None):
            raise UsageError(
                "undo.no_inverse",
                "An act needs either an inverse or the reason why it can't be taken back",
                "Give inverse_tool and inverse_input, or final_reason.",
            )
        if args.inverse_tool is not None:
            self._inverses.check(args.inverse_tool, args.inverse_input)
        _require_own(ctx.caller, args.touched)
        # The owner that forgot to ask is stopped here, before the effect.
        for item in args.touched:
            ctx.confine(item.resource)

    def _tell(self, tx: Transaction, row: dict[str, Any]) -> None:
        if told := _happening(row):
            tx.emit(told)


def _happening(row: dict[str, Any]) -> UndoRecorded | None:
    """What is told of a row once it stands; of what an undo's own steps recorded, nothing."""
    if row["role"] != "act":
        return None
    return UndoRecorded(id=row["id"], actor_kind=row["actor_kind"], tool=row["tool"])


def inverse_input(row: rows.Row, only: list[str] | None = None) -> dict[str, Any]:
    """The recorded input of a row's inverse as it was stored, and with it the part that is to be reversed."""
    found: dict[str, Any] = from_json(row.inverse_input or "{}")
    return found if only is None else {**found, "only": only}


def _is_found_again(ctx: Context, args: ConfirmAct) -> bool:
    """Whether the owner could tell all of a confirmation once more, were it lost."""
    return args.inverse_input is None and args.blobs is None and can_tell(ctx, ctx.caller)


def _check_touched(ctx: Context, args: ConfirmAct) -> None:
    if args.touched is not None:
        _require_own(ctx.caller, args.touched)
        for item in args.touched:
            ctx.confine(item.resource)


def _require_own(recorder: str, touched: list[Touched]) -> None:
    names = [item.resource for item in touched]
    for name in names:
        if f"module:{resources.owner(name)}" != recorder:
            raise RefusedError(
                "undo.foreign_resource",
                f"{recorder} may not record {name:.200}, which another module owns",
                "Let the owner record what was done to its resources.",
            )
    if len(set(names)) != len(names):
        raise UsageError("undo.twice_touched", "A resource is named twice among those touched")
