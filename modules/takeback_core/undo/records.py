"""Run records: what an undo is about to do, written down before it begins."""

from __future__ import annotations

from typing import Any

from takeback import moments
from takeback.callers import Caller
from takeback.context import Context
from takeback_core.undo import rows
from takeback_core.undo.chosen import Chosen, Subject
from takeback_core.undo.models import Result
from takeback_core.undo.runs import RunRecord, RunSubject
from takeback_core.undo.steps import Draft, PlannedStep


def record_of(chosen: Chosen, draft: Draft) -> RunRecord:
    """What an undo will do, before it begins."""
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
                again=sorted(one.again),
            )
            for one in chosen.subjects
            if one.needs <= running.keys()
        ],
        sets=chosen.sets,
        started=draft.started(),
        predicted=draft.predicted(),
        parts={row_id: step.only for row_id, step in running.items() if step.only is not None},
    )


def run_row(
    ctx: Context, record: RunRecord, tool: str, summary: str, kind: str, key: str | None
) -> dict[str, Any]:
    """The row of an undo that begins."""
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


def _part(chosen: Chosen, subject: Subject, steps: list[PlannedStep]) -> list[str]:
    """The resources of an act that these steps reverse, when that is not all there is to it."""
    if chosen.sets != "undone":
        return list(subject.part)
    standing = {item.resource for item in subject.row.touched} - subject.row.taken.keys()
    reversed_ = standing & {item.resource for step in steps for item in step.items}
    in_part = subject.part or not subject.whole or any(step.step.part for step in steps)
    return sorted(reversed_) if in_part and standing - reversed_ else []
