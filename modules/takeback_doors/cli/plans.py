"""Plans and their results as people see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding

from takeback_doors.cli import screen
from takeback_doors.cli.ids import shortened
from takeback_doors.cli.paths import in_words, near, of_resource
from takeback_doors.cli.plain import visible

_EFFECTS_SHOWN = 10
# Beside a status, a verb and an id; the effects below name each path in full.
_PATH = 40


def show_plan(plan: dict[str, Any], *, stderr: bool = False) -> None:
    """Print every step with what it does to each resource, and what stands against it."""
    out = screen.console(stderr=stderr)
    short = shortened([step["act"] for step in plan["steps"]])
    for step in plan["steps"]:
        _show_step(out, step, short[step["act"]])
        for conflict in plan["conflicts"]:
            if conflict["act"] == step["act"] and conflict.get("by"):
                _show_conflict(out, conflict, step)


def show_results(results: Sequence[dict[str, Any]], *, left: int = 0) -> None:
    """Print in one line what became of the acts, `left` of which were left out."""
    counts = Counter(_outcome(result) for result in results)
    words = ", ".join(f"{number} {outcome}" for outcome, number in counts.items())
    nothing = "Nothing could be taken back" if left else "There was nothing to do"
    screen.console().print(screen.text(words or nothing))


def show_skipped(steps: Sequence[dict[str, Any]]) -> None:
    """Say on stderr which steps were left out, each with its reason."""
    if not steps:
        return
    out = screen.console(stderr=True)
    short = shortened([step["act"] for step in steps])
    out.print(screen.text(f"{len(steps)} left out:"))
    for step in steps:
        why = step.get("reason") or step["status"].replace("_", " ")
        out.print(_indented(f"{_what(step)} ({why})  {short[step['act']]}", "red"))


def _outcome(result: dict[str, Any]) -> str:
    return f"{result['state']} already" if result["already"] else str(result["state"])


def _show_step(out: Console, step: dict[str, Any], short: str) -> None:
    line = screen.state(step["status"])
    line.append_text(screen.text(f"  {_what(step)}"))
    line.append_text(screen.text(f"  {short}", "dim"))
    out.print(line)
    if step.get("reason"):
        out.print(_indented(step["reason"], "dim"))
    for effect in step["effects"][:_EFFECTS_SHOWN]:
        out.print(_indented(_effect(effect, step)))
    if (more := len(step["effects"]) - _EFFECTS_SHOWN) > 0:
        out.print(_indented(f"and {more} more"))


def _effect(effect: dict[str, Any], step: dict[str, Any]) -> str:
    words = f"{effect['action']} {_name(effect['resource'])}"
    return words + _unless_said(effect.get("reason"), step)


def _show_conflict(out: Console, conflict: dict[str, Any], step: dict[str, Any]) -> None:
    words = f"{_name(conflict['resource'])} was written since by {conflict['by']}"
    out.print(_indented(words + _unless_said(conflict.get("reason"), step), "red"))


def _what(step: dict[str, Any]) -> str:
    return in_words(
        step["summary"], [effect["resource"] for effect in step["effects"][:_EFFECTS_SHOWN]], _PATH
    )


def _name(resource: str) -> str:
    path = of_resource(resource)
    return visible(near(path) if path else resource)


def _unless_said(reason: str | None, step: dict[str, Any]) -> str:
    return f" ({reason})" if reason and reason != step.get("reason") else ""


def _indented(words: str, style: str = "") -> Padding:
    return Padding(screen.text(words, style), (0, 0, 0, 4), expand=False)
