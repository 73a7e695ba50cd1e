"""Plans: their steps as shown, and what stands behind each."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from takeback.errors import TakebackError
from takeback_core.undo import resources, rows
from takeback_core.undo.models import Conflict, Effect, Plan, Status, Stay, Step, Touched
from takeback_core.undo.rows import Row

_WEIGHTS: dict[Status, int] = {
    "clean": 0,
    "merge": 0,
    "dependents": 1,
    "gone": 2,
    "conflict": 3,
    "not_undoable": 4,
}


@dataclass(slots=True)
class PlannedStep:
    """One row to reverse: the step as shown, and what its execution needs.

    `standing` is what of the row is there to be reversed, `items` what of that the step reverses. `expected`
    and `predicted` map resources to their versions before and after the step. `idle` means that everything
    is already as it should be; `overwrites` counts the conflicts that are overcome by force.
    """

    row: Row
    step: Step
    standing: list[Touched]
    items: list[Touched]
    expected: dict[str, str] = field(default_factory=dict)
    predicted: dict[str, str] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)
    refusal: TakebackError | None = None
    idle: bool = False
    overwrites: int = 0

    @property
    def runs(self) -> bool:
        """Whether the step would be executed."""
        return self.step.status in ("clean", "merge") or self.step.forced

    @property
    def only(self) -> list[str] | None:
        """The resources that the row's inverse is to be kept to; None when it runs as it is."""
        names = [item.resource for item in self.items]
        return names if len(names) < len(self.row.touched) else None

    @property
    def held(self) -> list[str]:
        """The resources that go on to stand as the row has them."""
        items = self.step.stays if self.runs else self.standing
        return [item.resource for item in items]

    def against(self) -> dict[str, Conflict]:
        """What stands in the way of the step, by the entry that it is on."""
        return {_entry(each.resource): each for each in reversed(self.conflicts[self.overwrites :])}

    def without(self, out: Mapping[str, Conflict]) -> list[Touched]:
        """The step's items but for these entries; a folder and what it holds go together."""
        return [item for item in self.items if _entry(item.resource) not in out]

    def note_stays(self, out: Mapping[str, Conflict]) -> None:
        """Note what stands and is no part of the step, for a conflict or since nobody asked for it."""
        names = {item.resource for item in self.items}
        rest = [item.resource for item in self.standing if item.resource not in names]
        self.step.stays = [_stay(name, out.get(_entry(name))) for name in rest]
        self.step.part = bool(rest)

    def stop(self, status: Status, reason: str) -> None:
        """Give the step a status in which it does not run."""
        self.step.status = status
        self.step.forced = False
        self.step.reason = self.step.reason or reason

    def clash(
        self, item: Touched, now: dict[str, str], status: Status, reason: str, other: Row | None = None
    ) -> None:
        """Note a conflict on one resource, with the act that it is with; the gravest status stands."""
        if _WEIGHTS[status] > _WEIGHTS[self.step.status]:
            self.step.status = status
        self.step.forced = False
        self.step.reason = self.step.reason or reason
        if other is not None and other.id not in self.step.dependents:
            self.step.dependents.append(other.id)
        self.conflicts.append(
            Conflict(
                act=self.step.act,
                resource=item.resource,
                status=status,
                reason=reason,
                base=item.after,
                ours=now.get(item.resource, ""),
                theirs=item.before,
                by=other.actor if other is not None else None,
                at=other.at if other is not None else None,
                dependents=[other.id] if other is not None else [],
            )
        )


@dataclass(slots=True)
class Draft:
    """A plan and what stands behind it."""

    steps: list[PlannedStep]
    plan: Plan

    @staticmethod
    def of(steps: list[PlannedStep]) -> Draft:
        """The plan of steps, with the digest that stands for all that they will do."""
        return Draft(steps, _plan(steps))

    def predicted(self) -> dict[str, str]:
        """The versions that resources will have when every step that runs has run."""
        promised: dict[str, str] = {}
        for one in self.steps:
            if one.runs:
                overtake(promised, one.predicted)
        return promised

    def started(self) -> dict[str, str]:
        """The versions that resources have before any step has run."""
        found: dict[str, str] = {}
        for one in self.steps:
            if one.runs and not one.idle:
                found = one.expected | found
        return found

    def blocking(self) -> list[PlannedStep]:
        """The steps that can't be executed as planned."""
        return [one for one in self.steps if not one.runs]


def overtake(known: dict[str, str], newer: dict[str, str]) -> None:
    """Take newer versions in, and forget those of contents around them and of what lies in them.

    What an entry is by itself is a part of what it is, so that either has the other forgotten.
    """
    for name in newer:
        known.pop(resources.other_name(name), None)
        for tree in resources.trees_around(name):
            known.pop(tree, None)
        if name.endswith("/"):
            for inner in [other for other in known if other.startswith(name)]:
                del known[inner]
    known.update(newer)


def unvalued(plan: Plan) -> Plan:
    """A plan as the log keeps it: without the values that are somebody's data."""
    bare = {"now": None, "then": None, "base": None}
    steps = [
        step.model_copy(update={"effects": [one.model_copy(update=bare) for one in step.effects]})
        for step in plan.steps
    ]
    return plan.model_copy(update={"steps": steps})


def unchanged(item: Touched, version: str) -> Effect:
    """The effect on a resource that is as it should be."""
    return Effect(resource=item.resource, action="skip", reason="unchanged", version=version)


def simple_effect(item: Touched) -> Effect:
    """The effect of an inverse that says nothing of its own."""
    action = "delete" if item.before == "absent" else "restore"
    return Effect(resource=item.resource, action=action, version=item.before)


def _entry(resource: str) -> str:
    return resource.rstrip("/")


def _stay(resource: str, conflict: Conflict | None) -> Stay:
    if conflict is None:
        return Stay(resource=resource, why="not_asked", reason="not asked for")
    return Stay(resource=resource, why=conflict.status, reason=conflict.reason)  # type: ignore[arg-type]


def _plan(steps: Iterable[PlannedStep]) -> Plan:
    shown = [one.step for one in steps]
    facts = [
        [
            one.row.id,
            one.row.inverse_tool,
            hashlib.sha256((one.row.inverse_input or "").encode()).hexdigest(),
            one.step.status,
            one.step.forced,
            sorted(one.expected.items()),
            [[effect.resource, effect.action, effect.version] for effect in one.step.effects],
        ]
        for one in steps
    ]
    return Plan(
        digest=hashlib.sha256(rows.dumps(facts).encode()).hexdigest(),
        steps=shown,
        counts=dict(Counter(step.status for step in shown)),
        conflicts=[conflict for one in steps for conflict in one.conflicts],
    )
