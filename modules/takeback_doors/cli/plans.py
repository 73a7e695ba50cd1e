"""Plans and their results as people see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from takeback_doors.cli import screen
from takeback_doors.cli.ids import shortened
from takeback_doors.cli.plain import resource_name, visible

_EFFECTS_SHOWN = 10


def show_plan(plan: dict[str, Any], *, stderr: bool = False) -> None:
    """Print every step with what it does to each resource, and the conflicts."""
    out = screen.console(stderr=stderr)
    short = shortened([step["act"] for step in plan["steps"]])
    for step in plan["steps"]:
        _show_step(out, step, short[step["act"]])
    if not plan["steps"]:
        out.print("There is nothing to take back.")
    for conflict in plan["conflicts"]:
        _show_conflict(out, conflict)


def show_results(results: Sequence[dict[str, Any]]) -> None:
    """Print in one line what became of the acts."""
    now = [result for result in results if not result["already"]]
    states = sorted({str(result["state"]) for result in now})
    counts = [f"{sum(result['state'] == state for result in now)} {state}" for state in states]
    if already := len(results) - len(now):
        counts.append(
            f"{already} had been {results[-1]['state']} already" if not now else f"{already} before"
        )
    screen.console().print(screen.text(", ".join(counts) or "Nothing was done"))


def _show_step(out: Console, step: dict[str, Any], short: str) -> None:
    line = screen.state(step["status"])
    line.append_text(screen.text(f"  {step['summary']}"))
    line.append_text(screen.text(f"  {short}", "dim"))
    out.print(line)
    if step.get("reason"):
        out.print(screen.text(f"    {step['reason']}", "dim"))
    for effect in step["effects"][:_EFFECTS_SHOWN]:
        out.print(_indented(_effect(effect)))
    if (more := len(step["effects"]) - _EFFECTS_SHOWN) > 0:
        out.print(_indented(f"and {more} more"))


def _effect(effect: dict[str, Any]) -> str:
    reason = f" ({effect['reason']})" if effect.get("reason") else ""
    return f"{effect['action']} {resource_name(effect['resource'])}{reason}"


def _show_conflict(out: Console, conflict: dict[str, Any]) -> None:
    by = f", written by {conflict['by']}" if conflict.get("by") else ""
    status = str(conflict["status"]).replace("_", " ")
    words = f"! {status}: {resource_name(conflict['resource'])}{by}. {conflict.get('reason') or ''}"
    out.print(screen.text(words.strip(), "red"))


def _indented(words: str) -> str:
    return f"    {visible(words)}"
