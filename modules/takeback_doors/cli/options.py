"""What a person can do about a plan that is refused, by the options that their command has."""

from __future__ import annotations

from typing import Any

from rich.padding import Padding

from takeback_doors.cli import screen
from takeback_doors.cli.conflicts import blocking, missing_folder, runs
from takeback_doors.cli.paths import near
from takeback_doors.cli.plain import visible

_WORDS = {
    "--with-dependents": "take the later acts back as well, newest first",
    "--skip-conflicts": "leave out what conflicts, and what is older on it",
    "--path PATH": "take back only what you name; can be given more than once",
    "--lay-out": "only put its versions beside each file, to merge them by hand",
    "--force": "overwrite it; asks first, and keeps what it overwrites",
}
_OVERWRITABLE = {"conflict", "dependents"}


def show_options(
    plan: dict[str, Any], tool: str, given: dict[str, Any], intro: str, rest: dict[str, Any] | None = None
) -> None:
    """Say on stderr, after an introduction, what would let the command go on.

    `tool` is what it calls, `given` with which arguments, `rest` the plan that leaves out what conflicts.
    """
    out = screen.console(stderr=True)
    fitting, gone = _fitting(plan, tool, given, rest), _missing(plan)
    words = [intro]
    if gone:
        words.append(f"The folder {visible(near(gone))} is gone; make it again, then repeat this.")
    if fitting:
        words.append(f"Repeat it with {'one of these' if len(fitting) > 1 else 'this'}:")
    out.print(screen.text(" ".join(words)))
    width = max(map(len, fitting), default=0)
    for option in fitting:
        out.print(Padding(screen.text(f"{option:<{width}}  {_WORDS[option]}"), (0, 0, 0, 4), expand=False))


def _fitting(
    plan: dict[str, Any], tool: str, given: dict[str, Any], rest: dict[str, Any] | None
) -> list[str]:
    """The options that the command has and that would help."""
    statuses = {step["status"] for step in blocking(plan)}
    found = []
    if tool == "undo.run" and "dependents" in statuses and not given.get("dependents"):
        found.append("--with-dependents")
    # Where all is in the way of something else, nothing would be left to take back.
    if rest is not None and any(map(runs, rest["steps"])):
        found += ["--skip-conflicts", *(["--path PATH"] if tool == "undo.run" else [])]
    if tool == "undo.run" and _on_files(plan) and not _missing(plan):
        found.append("--lay-out")
    if statuses <= _OVERWRITABLE and not given.get("force") and not _missing(plan):
        found.append("--force")
    return found


def _on_files(plan: dict[str, Any]) -> bool:
    """Whether a file as such stands in conflict, whose versions can be compared."""
    return any(
        each["status"] == "conflict" and each["ours"].startswith("file:") for each in plan["conflicts"]
    )


def _missing(plan: dict[str, Any]) -> str:
    """A folder without which nothing can be put back, not even by force."""
    blocked = {step["act"] for step in blocking(plan)}
    found = (
        missing_folder(each) for each in plan["conflicts"] if each["act"] in blocked and not each.get("by")
    )
    return next(filter(None, found), "")
