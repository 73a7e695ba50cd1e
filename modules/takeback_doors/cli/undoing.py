"""What undo, redo and rewind have in common: a plan, a yes where one is needed, and the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from takeback.errors import EXIT_CODES
from takeback_doors.cli.presence import confirm_force
from takeback_doors.cli.shell import Shell


def carry_out(
    shell: Shell,
    tool: str,
    selection: dict[str, Any],
    *,
    preview: dict[str, Any] | None = None,
    how: dict[str, Any] | None = None,
    dry_run: bool = False,
    force: bool = False,
    digest: str | None = None,
) -> int:
    """Plan a selection of acts and, unless it is a dry run, execute the plan; returns the exit code.

    `preview` is what only the preview takes, `how` what only the run does. With `skip_conflicts` in it the
    answer has `skipped`, the steps that were left out, and the code is 3 when there are any.
    """
    asked = {**selection, **(preview or {}), "force": force}
    if dry_run:
        plan = shell.call("undo.preview", asked, present=force)["plan"]
        shell.answer({"plan": plan}, lambda: _show(plan, None, ()))
        return 0
    if force:
        plan = shell.call("undo.preview", asked, present=True)["plan"]
        confirm_force(plan)
        digest = digest or plan["digest"]
    args = {**selection, **(how or {}), "digest": digest, "force": force}
    outcome = shell.call(tool, args, present=force)
    skipped: list[dict[str, Any]] = []
    if args.get("skip_conflicts"):
        skipped = outcome["skipped"] = _skipped(outcome)
    shell.answer(outcome, lambda: _show(outcome["plan"], outcome["results"], skipped))
    return EXIT_CODES["conflict"] if skipped else 0


def _skipped(outcome: dict[str, Any]) -> list[dict[str, Any]]:
    taken_back = {result["id"] for result in outcome["results"]}
    return [step for step in outcome["plan"]["steps"] if step["act"] not in taken_back]


def _show(
    plan: dict[str, Any], results: list[dict[str, Any]] | None, skipped: Sequence[dict[str, Any]]
) -> None:
    from takeback_doors.cli.plans import show_plan, show_results, show_skipped

    show_plan(plan)
    if results is not None:
        show_results(results, left=len(skipped))
    show_skipped(skipped)
