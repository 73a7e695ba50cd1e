"""What undo, redo and rewind have in common: a plan, a yes where one is needed, and the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from takeback.errors import EXIT_CODES, TakebackError
from takeback_doors.cli.conflicts import blocking, left_out
from takeback_doors.cli.output import say
from takeback_doors.cli.presence import confirm_force
from takeback_doors.cli.shell import Shell

# Why a plan was refused; the steps that stand in its way say the rest.
_REFUSALS = {
    "undo.conflict": "Refused, for what was changed since would be lost",
    "undo.dependents": "Refused, for later acts rest on it and would be lost",
    "undo.not_undoable": "Refused, for this can't be taken back",
}
# Each is looked up in the log, which nobody wants to wait for.
_NOTED = 20


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

    `preview` is what only the preview takes, `how` what both take beside the selection. With `skip_conflicts`
    in it the answer has `skipped`, the steps that were left out, and the code is 3 when anything was.
    """
    args = {**selection, **(how or {}), "force": force}
    asked = {**args, **(preview or {})}
    if dry_run:
        plan = shell.call("undo.preview", asked, present=force)["plan"]
        shell.answer({"plan": plan}, lambda: _show_preview(shell, plan, tool, asked))
        return 0
    if force:
        digest = _confirmed(shell, asked, digest)
    try:
        outcome = shell.call(tool, {**args, "digest": digest}, present=force)
    except TakebackError as error:
        if shell.as_json or error.code not in _REFUSALS:
            raise
        _show_refusal(shell, error, tool, asked)
        return error.exit_code
    return _answer(shell, outcome, tool, skips=bool(args.get("skip_conflicts")))


def _confirmed(shell: Shell, asked: dict[str, Any], digest: str | None) -> str:
    """The digest of the plan that the person said yes to."""
    plan = shell.call("undo.preview", asked, present=True)["plan"]
    if blocking(plan):
        # Not even force helps here, so there is nothing to say yes to: the run will tell why.
        return str(plan["digest"])
    confirm_force(plan)
    return digest or str(plan["digest"])


def _answer(shell: Shell, outcome: dict[str, Any], tool: str, *, skips: bool) -> int:
    skipped: list[dict[str, Any]] = []
    if skips:
        skipped = outcome["skipped"] = _skipped(outcome)
    shell.answer(outcome, lambda: _show_outcome(shell, outcome, tool, skipped))
    left = skipped or (skips and any(map(left_out, outcome["plan"]["steps"])))
    return EXIT_CODES["conflict"] if left else 0


def _skipped(outcome: dict[str, Any]) -> list[dict[str, Any]]:
    taken_back = {result["id"] for result in outcome["results"]}
    return [step for step in outcome["plan"]["steps"] if step["act"] not in taken_back]


def _show_preview(shell: Shell, plan: dict[str, Any], tool: str, asked: dict[str, Any]) -> None:
    from takeback_doors.cli.options import show_options
    from takeback_doors.cli.plans import show_plan

    show_plan(plan, notes=_notes(shell, plan, tool))
    if blocking(plan) and not asked.get("skip_conflicts"):
        rest = _without_conflicts(shell, tool, asked)
        show_options(plan, tool, asked, "As it is, this would be refused.", rest)


def _show_refusal(shell: Shell, error: TakebackError, tool: str, asked: dict[str, Any]) -> None:
    from takeback_doors.cli.options import show_options
    from takeback_doors.cli.plans import show_refused

    say(f"Error: {_REFUSALS[error.code]}")
    show_refused(error.data["plan"])
    rest = _without_conflicts(shell, tool, asked)
    show_options(error.data["plan"], tool, asked, "Nothing was changed.", rest)


def _without_conflicts(shell: Shell, tool: str, asked: dict[str, Any]) -> dict[str, Any] | None:
    """The plan that leaves out what conflicts, for a command that could be told to."""
    if tool == "undo.redo" or asked.get("skip_conflicts"):
        return None
    skipping = {**asked, "force": False, "skip_conflicts": True}
    plan: dict[str, Any] = shell.call("undo.preview", skipping)["plan"]
    return plan


def _show_outcome(
    shell: Shell, outcome: dict[str, Any], tool: str, skipped: Sequence[dict[str, Any]]
) -> None:
    from takeback_doors.cli.plans import show_plan, show_results, show_skipped

    show_plan(outcome["plan"], notes=_notes(shell, outcome["plan"], tool))
    show_results(outcome["results"], left=len(skipped))
    show_skipped(skipped, [step for step in outcome["plan"]["steps"] if step not in skipped])


def _notes(shell: Shell, plan: dict[str, Any], tool: str) -> dict[str, list[str]]:
    """What the log noted of the acts that a plan takes back, when it is short enough."""
    if tool == "undo.redo" or len(plan["steps"]) > _NOTED:
        return {}
    pages = [shell.call("undo.list", {"id_prefix": step["act"], "limit": 1}) for step in plan["steps"]]
    return {act["id"]: act["why"] for page in pages for act in page["acts"]}
