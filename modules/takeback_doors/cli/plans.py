"""Plans and their results as people see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding

from takeback_doors.cli import conflicts, screen
from takeback_doors.cli.captured import coincident, listed, not_captured
from takeback_doors.cli.folders import as_one, name, whole_name
from takeback_doors.cli.ids import shortened
from takeback_doors.cli.paths import in_words, of_resource

_EFFECTS_SHOWN = 10
# Beside a status, a verb and an id; the effects below name each path in full.
_PATH = 40


def show_plan(
    plan: dict[str, Any], *, stderr: bool = False, notes: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Print every step with what it does to each resource, and what stands against it.

    `notes` has, by act, what the log noted of it.
    """
    _show_steps(plan, plan["steps"], stderr=stderr, notes=notes or {})


def show_refused(plan: dict[str, Any]) -> None:
    """Print on stderr the steps for which a plan is refused, and how many others there are."""
    blocking = conflicts.blocking(plan)
    _show_steps(plan, blocking, stderr=True, notes={})
    if others := len(plan["steps"]) - len(blocking):
        words = f"Nothing stands against the other {others if others > 1 else 'one'}."
        screen.console(stderr=True).print(screen.text(words))


def show_results(results: Sequence[dict[str, Any]], *, left: int = 0) -> None:
    """Print in one line what became of the acts, `left` of which were left out."""
    counts = Counter(_outcome(result) for result in results)
    words = ", ".join(f"{number} {outcome}" for outcome, number in counts.items())
    nothing = "Nothing could be taken back" if left else "There was nothing to do"
    screen.console().print(screen.text(words or nothing))


def show_skipped(steps: Sequence[dict[str, Any]], taken: Sequence[dict[str, Any]] = ()) -> None:
    """Say on stderr which steps were left out, and what of those that were `taken`, each with its reason."""
    left = [(_what(step), step.get("reason") or step["status"].replace("_", " "), step) for step in steps]
    for step in taken:
        stays = [each for each in as_one(step.get("stays") or (), "reason") if each["why"] != "not_asked"]
        left += [(name(each["resource"]), conflicts.reason(each["reason"]), step) for each in stays]
    if not left:
        return
    out = screen.console(stderr=True)
    short = shortened([step["act"] for _, _, step in left])
    out.print(screen.text(f"{len(left)} left out:"))
    for what, why, step in left:
        out.print(_indented(f"{what} ({why})  {short[step['act']]}", "red"))


def _outcome(result: dict[str, Any]) -> str:
    if result.get("part"):
        return "in part already" if result["already"] else "in part"
    return f"{result['state']} already" if result["already"] else str(result["state"])


def _show_steps(
    plan: dict[str, Any],
    steps: Sequence[dict[str, Any]],
    *,
    stderr: bool,
    notes: Mapping[str, Sequence[str]],
) -> None:
    out = screen.console(stderr=stderr)
    short = shortened([step["act"] for step in steps])
    for step in steps:
        _show_head(out, step, short[step["act"]])
        if conflicts.runs(step):
            _show_effects(out, step)
            _show_overwritten(out, plan, step)
            _show_stays(out, plan, step)
        else:
            _show_block(out, plan, step)
        for words in not_captured(notes.get(step["act"], ())):
            out.print(_indented(f"not captured, so it stays: {words}", "dim"))
        if words := coincident(notes.get(step["act"], ())):
            out.print(_indented(f"perhaps not by it, so it stays unless --path names it: {words}", "dim"))


def _show_head(out: Console, step: dict[str, Any], short: str) -> None:
    line = screen.state(step["status"])
    line.append_text(screen.text(f"  {_what(step)}"))
    line.append_text(screen.text(f"  {short}", "dim"))
    out.print(line)


def _show_effects(out: Console, step: dict[str, Any]) -> None:
    if step.get("reason"):
        out.print(_indented(step["reason"], "dim"))
    effects = as_one(step["effects"], "action", "reason")
    for effect in effects[:_EFFECTS_SHOWN]:
        reason = effect.get("reason")
        why = f" ({reason})" if reason and reason != step.get("reason") else ""
        out.print(_indented(f"{effect['action']} {whole_name(effect)}{why}"))
    if (more := len(effects) - _EFFECTS_SHOWN) > 0:
        out.print(_indented(f"and {more} more"))


def _show_overwritten(out: Console, plan: dict[str, Any], step: dict[str, Any]) -> None:
    left = _left(step)
    later = [
        each for each in conflicts.of_step(plan, step) if each.get("by") and each["resource"] not in left
    ]
    for line in conflicts.told(later):
        out.print(_indented(line, "red"))


def _show_stays(out: Console, plan: dict[str, Any], step: dict[str, Any]) -> None:
    """What of an act is left as it is: what stands against that, and what nobody asked for."""
    left = _left(step)
    against = [each for each in conflicts.of_step(plan, step) if each["resource"] in left]
    for line in conflicts.told(against):
        out.print(_indented(line if line.startswith(" ") else f"stays: {line}", "red"))
    unasked = [each for each in as_one(step.get("stays") or ()) if each["why"] == "not_asked"]
    if unasked:
        names = [of_resource(each["resource"]) or each["resource"] for each in unasked]
        out.print(_indented(f"stays, for it was not asked for: {listed(names)}", "dim"))


def _left(step: dict[str, Any]) -> set[str]:
    """The resources that a step leaves as they are for a conflict."""
    return {each["resource"] for each in step.get("stays") or () if each["why"] != "not_asked"}


def _show_block(out: Console, plan: dict[str, Any], step: dict[str, Any]) -> None:
    against = conflicts.of_step(plan, step)
    if step.get("reason") and not against:
        out.print(_indented(step["reason"], "red"))
    for line in conflicts.told(against):
        out.print(_indented(line, "red"))
    if against and (others := conflicts.unhindered(step)):
        out.print(_indented(f"nothing stands against the other {others if others > 1 else 'one'}"))


def _what(step: dict[str, Any]) -> str:
    return in_words(
        step["summary"], [effect["resource"] for effect in step["effects"][:_EFFECTS_SHOWN]], _PATH
    )


def _indented(words: str, style: str = "") -> Padding:
    deeper = len(words) - len(words.lstrip())
    return Padding(screen.text(words.strip(), style), (0, 0, 0, 4 + deeper), expand=False)
