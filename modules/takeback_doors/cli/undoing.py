"""What undo, redo and rewind have in common: a plan, a yes where one is needed, and the results."""

from __future__ import annotations

from typing import Any

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
) -> None:
    """Plan a selection of acts and, unless it is a dry run, execute the plan.

    `preview` is what only the preview takes, `how` what only the run does.
    """
    asked = {**selection, **(preview or {}), "force": force}
    if dry_run:
        plan = shell.call("undo.preview", asked, present=force)["plan"]
        shell.answer({"plan": plan}, lambda: _show(plan, None))
        return
    if force:
        plan = shell.call("undo.preview", asked, present=True)["plan"]
        confirm_force(plan)
        digest = digest or plan["digest"]
    args = {**selection, **(how or {}), "digest": digest, "force": force}
    outcome = shell.call(tool, args, present=force)
    shell.answer(outcome, lambda: _show(outcome["plan"], outcome["results"]))


def _show(plan: dict[str, Any], results: list[dict[str, Any]] | None) -> None:
    from takeback_doors.cli.plans import show_plan, show_results

    show_plan(plan)
    if results is not None:
        show_results(results)
