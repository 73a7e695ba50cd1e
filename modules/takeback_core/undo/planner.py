"""The planner: what undoing will do, worked out by the same code that will do it."""

from __future__ import annotations

from typing import Any

from takeback.callers import Caller
from takeback.context import Context
from takeback.errors import ConflictError, RefusedError, TakebackError
from takeback.joint import Joint
from takeback.store import Store
from takeback_core.undo import resources, rows
from takeback_core.undo.actors import may_undo
from takeback_core.undo.chosen import Chosen
from takeback_core.undo.inverse import RUNS_AS, InverseCheck
from takeback_core.undo.looking import versions
from takeback_core.undo.models import Conflict, Effect, Status, Step, Touched
from takeback_core.undo.recorder import inverse_input
from takeback_core.undo.rows import Row
from takeback_core.undo.steps import Draft, PlannedStep, overtake, simple_effect, unchanged


class Planner:
    """Drafts plans; changes nothing."""

    def __init__(self, store: Store, inverses: InverseCheck) -> None:
        self._store = store
        self._inverses = inverses

    async def draft(self, ctx: Context, chosen: Chosen, *, force: bool = False, skip: bool = False) -> Draft:
        """Plan the reversal of what was chosen, newest first; raises only what a broken owner raises.

        With `skip` a step goes on without what is in conflict of it, where its inverse can. Raises
        `undo.nested` within an undo that holds a database open, which would be waited for.
        """
        if ctx.joint is not None and ctx.joint.joined:
            raise RefusedError("undo.nested", "An inverse can't plan another undo", "Do that by itself.")
        joint = Joint()
        try:
            drafting = _Drafting(ctx, self._store, self._inverses, chosen, joint, force, skip)
            return Draft.of([await drafting.step(row) for row in chosen.rows])
        finally:
            await joint.rollback()


class _Drafting:
    """One plan in the making: what the steps so far would have left behind."""

    def __init__(
        self,
        ctx: Context,
        store: Store,
        inverses: InverseCheck,
        chosen: Chosen,
        joint: Joint,
        force: bool,
        skip: bool,
    ) -> None:
        self._ctx = ctx
        self._store = store
        self._inverses = inverses
        self._choice = chosen
        self._chosen = chosen.rows
        self._seen = chosen.seen
        self._redoing = chosen.sets == "done"
        self._acts = chosen.acts()
        self._stuck = chosen.stuck
        self._left = chosen.left
        self._force = force
        self._skip = skip and not self._redoing
        self._rehearsal: dict[str, Any] = {}
        self._joint = joint
        self._versions: dict[str, str] = {}
        self._left_out = resources.Places()

    async def step(self, row: Row) -> PlannedStep:
        planned = await self._drafted(row, self._choice.asked(row, self._acts.get(row.id, row)))
        if self._skip and not planned.runs:
            planned = await self._part_of(planned)
        self._left_out.add(planned.held)
        return planned

    async def _drafted(self, row: Row, items: list[Touched]) -> PlannedStep:
        """The step that reverses these of what a row touched."""
        act = self._acts.get(row.id, row)
        step = Step(act=act.id, summary=act.summary, status="clean")
        planned = PlannedStep(row, step, self._choice.standing(row, act), items)
        planned.note_stays({})
        try:
            await self._work_out(planned)
        except RefusedError as refusal:
            planned.refusal = refusal
            planned.stop("not_undoable", f"{refusal.message} [{refusal.code}]")
        return planned

    async def _part_of(self, whole: PlannedStep) -> PlannedStep:
        """The step on what of another stands in no conflict, where there is such a part; else that other."""
        tried, out = whole, dict[str, Conflict]()
        conflicts: list[Conflict] = []
        while not tried.runs:
            out = tried.against() | out
            conflicts += tried.conflicts
            rest = tried.without(out)
            if not rest or len(rest) == len(tried.items):
                return whole
            tried = await self._drafted(whole.row, rest)
        tried.note_stays(out)
        tried.conflicts = conflicts + tried.conflicts
        return tried

    async def _work_out(self, planned: PlannedStep) -> None:
        row = planned.row
        if why := self._stuck.get(row.id) or _not_reversible(row):
            planned.stop("not_undoable", why)
        elif row.id in self._left:
            await self._leave_so(planned)
        elif row.touched and not planned.items:
            planned.idle = True  # all that is left of it was taken back by itself
        else:
            await self._work_out_inverse(planned)

    async def _leave_so(self, planned: PlannedStep) -> None:
        """Nothing is to be run, but nothing is called redone either over what came since."""
        found = self._left[planned.row.id]
        now = planned.expected = await self._now(planned.items)
        if self._redoing:
            if await self._rests_on(planned, now, so_already=False):
                return
            changed = [item for item in planned.items if now[item.resource] != found.get(item.resource)]
            for item in changed:
                planned.clash(item, now, "conflict", "somebody changed it since")
            if changed:
                return
        planned.idle = True
        planned.step.effects = [unchanged(item, now[item.resource]) for item in planned.items]
        self._remember(planned)

    async def _work_out_inverse(self, planned: PlannedStep) -> None:
        row = planned.row
        assert row.inverse_tool is not None
        spec = self._inverses.check(row.inverse_tool, inverse_input(row))
        if planned.only is not None and "only" not in spec.input.model_fields:
            planned.stop("not_undoable", f"{row.inverse_tool} takes all of it back or nothing")
            return
        now = planned.expected = await self._now(planned.items)
        if await self._rests_on(planned, now, _is_so_already(planned, now)) or self._is_blocked(planned, now):
            if not self._force:
                return
            planned.step.forced, planned.overwrites = True, len(planned.conflicts)
        if _is_so_already(planned, now):
            self._already_so(planned)
            return
        changed = [item for item in planned.items if now[item.resource] != item.after]
        if spec.previews:
            await self._rehearse(planned, now)
        elif changed and not self._force:
            for item in changed:
                planned.clash(item, now, "conflict", "somebody changed it since")
        else:
            planned.step.forced = planned.step.forced or bool(changed)
            if changed:
                planned.step.status = "conflict"
            planned.step.effects = [simple_effect(item) for item in planned.items]
        self._remember(planned)

    async def _now(self, touched: list[Touched]) -> dict[str, str]:
        """The version of each resource as the steps before this one would leave it."""
        names = [item.resource for item in touched if item.resource not in self._versions]
        found = await versions(self._ctx, names, self._rehearsal, self._joint) if names else {}
        if found is None:
            raise RefusedError(
                "undo.owner_off",
                "The module that owns what this act touched is not running",
                "Switch it on (`takeback modules`) and try again.",
            )
        if self._ctx.scope is not None and any(name not in found for name in names):
            raise RefusedError(
                "undo.scope_unknown",
                "The module that owns what this act touched can't tell whether it is in this agent's scope",
                "The person may take it back.",
            )
        # An owner without a `versions` tool is taken at the log's word.
        return {
            item.resource: self._versions.get(item.resource, found.get(item.resource, item.after))
            for item in touched
        }

    async def _rests_on(self, planned: PlannedStep, now: dict[str, str], so_already: bool) -> bool:
        """Whether later acts that stay rest on what this one touched.

        A redo may come after that of an older act, unless it is the older one that made it so already.
        """
        row = planned.row
        act = self._acts.get(row.id, row)
        since = {item.resource: (row.stands_since(item.resource), act.seq) for item in planned.items}
        new = self._redoing and not so_already

        def look(db: rows.Database) -> list[tuple[str, Row]]:
            return [(n, one) for n, at in since.items() for one in rows.later(db, n, at, self._seen, new=new)]

        found = await self._store.read(look) if since else []
        for name, other in found:
            foreign = not may_undo(self._ctx, other)
            between = not act.same_session(other) and any(
                one.stands > other.stands and _share(name, one) for one in self._chosen if one is not row
            )
            item = next(one for one in planned.items if one.resource == name)
            status: Status = "conflict" if foreign or between else "dependents"
            who = other.actor if not foreign else "somebody else"
            planned.clash(item, now, status, f"{who} worked on it later", None if foreign else other)
        return bool(found)

    def _is_blocked(self, planned: PlannedStep, now: dict[str, str]) -> bool:
        hits = [item for item in planned.items if self._left_out.meets(item.resource)]
        for item in hits:
            planned.clash(item, now, "conflict", "a newer act on it is left standing")
        return bool(hits)

    def _already_so(self, planned: PlannedStep) -> None:
        planned.idle = True
        planned.step.effects = [unchanged(item, item.before) for item in planned.items]
        self._remember(planned)

    async def _rehearse(self, planned: PlannedStep, now: dict[str, str]) -> None:
        row = planned.row
        try:
            answer = await self._ctx.call(
                row.inverse_tool or "",
                inverse_input(row, planned.only),
                as_=RUNS_AS,
                confined_to_=now,
                force_=self._force,
                rehearsal_=self._rehearsal,
                joint_=self._joint,
            )
        except ConflictError as error:
            for item in planned.items:
                if now[item.resource] != item.after or len(planned.items) == 1:
                    planned.clash(item, now, "conflict", error.message)
            if not planned.conflicts:
                planned.stop("conflict", error.message)
            return
        except RefusedError:
            raise
        except TakebackError as error:
            planned.refusal = error
            planned.stop("not_undoable", f"{error.message} [{error.code}]")
            return
        planned.step.effects = _effects(answer, planned.items, valued=self._ctx.scope is None)
        planned.idle = bool(planned.step.effects) and all(
            one.action == "skip" for one in planned.step.effects
        )
        self._judge(planned, now)

    def _judge(self, planned: PlannedStep, now: dict[str, str]) -> None:
        """Read a step's status off the effects its rehearsal reported."""
        touched = {item.resource: item for item in planned.items}
        for effect in planned.step.effects:
            if effect.action in ("conflict", "gone"):
                unheard = Touched(resource=effect.resource, before="unknown", after="unknown")
                item = touched.get(effect.resource, unheard)
                status: Status = "gone" if effect.action == "gone" else "conflict"
                planned.clash(item, now, status, effect.reason or "somebody changed it since")
            elif effect.action == "merge" and planned.step.status == "clean":
                planned.step.status = "merge"
        if self._force and planned.runs:
            planned.step.forced = planned.step.forced or self._overwrites(planned, now)

    def _overwrites(self, planned: PlannedStep, now: dict[str, str]) -> bool:
        """Whether a step that runs by force would not run as it does without it."""
        changed = {item.resource for item in planned.items if now[item.resource] != item.after}
        if planned.step.status == "clean" and changed:
            return True
        # An owner gives a reason for putting back what it would have kept from everybody else.
        back = [one for one in planned.step.effects if one.action in ("restore", "delete")]
        return any(one.reason or one.resource in changed for one in back)

    def _remember(self, planned: PlannedStep) -> None:
        if not planned.runs:
            return
        told = {effect.resource: effect.version for effect in planned.step.effects if effect.version}
        for item in planned.items:
            planned.predicted[item.resource] = told.get(item.resource, item.before)
        overtake(self._versions, planned.predicted)


def _is_so_already(planned: PlannedStep, now: dict[str, str]) -> bool:
    return bool(planned.items) and all(now[item.resource] == item.before for item in planned.items)


def _not_reversible(row: Row) -> str:
    """Why a row as it stands can't be reversed, or nothing."""
    if row.state == "unknown":
        return "a crash hid whether it happened; say so first (undo.settle)"
    if row.state in ("pending", "undoing"):
        return "it is still going on"
    if row.inverse_tool is None:
        return row.reason or "its module recorded no way back"
    return ""


def _share(name: str, row: Row) -> bool:
    return any(
        resources.related(item.resource, name) or resources.related(name, item.resource)
        for item in row.touched
    )


def _effects(answer: Any, touched: list[Touched], *, valued: bool) -> list[Effect]:
    """The effects that an owner tells, with values only for who may see every one of them."""
    told = getattr(answer, "effects", None)
    if told is None:
        return [simple_effect(item) for item in touched]
    return [
        Effect(
            resource=one.resource,
            action=one.action,
            reason=one.reason,
            version=getattr(one, "version", ""),
            holds=getattr(one, "holds", None),
            **({kind: getattr(one, kind, None) for kind in ("now", "then", "base")} if valued else {}),
        )
        for one in told
    ]


def require_force(ctx: Context) -> None:
    """Overwriting is the person's alone; raises `undo.force_person` or `undo.force_presence`."""
    if Caller.parse(ctx.caller).kind != "person":
        raise RefusedError(
            "undo.force_person", "Only the person may overwrite what others changed", "Leave out force."
        )
    if not ctx.present:
        raise RefusedError(
            "undo.force_presence",
            "Overwriting needs the person to confirm it there and then",
            "Use a terminal or the page, where it can be asked.",
        )
