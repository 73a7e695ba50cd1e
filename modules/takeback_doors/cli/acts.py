"""Acts as people see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from takeback_doors.cli import screen, times
from takeback_doors.cli.actors import called, who
from takeback_doors.cli.captured import names_not_captured
from takeback_doors.cli.folders import as_one
from takeback_doors.cli.ids import shortened
from takeback_doors.cli.paths import in_words
from takeback_doors.cli.plain import resource_name

# What is left for a path beside the other columns, and a verb, in a terminal of 80.
_PATH = 32
_NAMED = 4
_TOUCHED = 20
_COLUMNS = ("When", "Who", "What", "State", "Id")


def show_acts(acts: Sequence[dict[str, Any]]) -> None:
    """Print a page of the log."""
    short = shortened([act["id"] for act in acts])
    # An undo names no resources of its own; what it took back is mostly on the same page.
    named = [resource for act in acts for resource in _resources(act)]
    rows = [_row(act, short[act["id"]], named) for act in acts]
    screen.show_table(_COLUMNS, rows, wide="What", none="Nothing has been done yet, or nothing that fits.")


def show_past(acts: Sequence[dict[str, Any]]) -> None:
    """Print a page of what was done to one path."""
    short = shortened([act["act"] for act in acts])
    rows: list[list[Text | str]] = [
        [
            times.short(act["at"]),
            called(act["actor"]),
            in_words(act["summary"], (), _PATH),
            screen.state(act["state"]),
            short[act["act"]],
        ]
        for act in acts
    ]
    screen.show_table(_COLUMNS, rows, wide="What", none="No act on it is in the log.")


def show_act(act: dict[str, Any]) -> None:
    """Print everything that the log knows of one act, but what was passed to its tool."""
    touched = as_one(act["touched"])
    screen.show_fields(
        [
            ("Id", act["id"]),
            ("What", act["summary"]),
            ("When", times.full(act["at"])),
            ("Who", f"{who(act)} ({act['actor']})"),
            ("Session", act["session"] or ""),
            ("Turn", act["turn"] or ""),
            ("Tool", act["tool"]),
            ("State", _state(act)),
            *[("Why", line) for line in act.get("why") or ()],
            ("Undone", _undone(act)),
            *[("Taken back", words) for words in _parts(act)],
            *[("Touched", resource_name(each["resource"])) for each in touched[:_TOUCHED]],
            ("", f"and {more} more" if (more := len(touched) - _TOUCHED) > 0 else ""),
        ]
    )


def show_line(act: dict[str, Any]) -> None:
    """Print one act on a line of its own."""
    line = screen.text(f"{times.clock(act['at'])}  {who(act)}  {_what(act, ())}  ")
    line.append_text(screen.state(act["state"]))
    line.append_text(screen.text(f"  {shortened([act['id']])[act['id']]}", "dim"))
    screen.console().print(line, soft_wrap=True)


def _row(act: dict[str, Any], short: str, named: Sequence[str]) -> list[Text | str]:
    what = screen.text(_what(act, named))
    if lost := names_not_captured(act.get("why") or ()):
        what.append("\n").append_text(screen.text(f"not captured: {lost}", "dim"))
    return [times.short(act["at"]), who(act), what, screen.state(act["state"]), short]


def _what(act: dict[str, Any], named: Sequence[str]) -> str:
    return in_words(act["summary"], _resources(act) or named, _PATH)


def _resources(act: dict[str, Any]) -> list[str]:
    # A summary names one or two of them, and a bulk act touches thousands.
    return [each["resource"] for each in act["touched"][:_NAMED]]


def _state(act: dict[str, Any]) -> Text:
    shown = screen.state(act["state"])
    if act.get("reason"):
        shown.append_text(screen.text(f" ({act['reason']})", "dim"))
    elif not act["undoable"] and act["state"] == "done":
        shown.append_text(screen.text(" (can't be taken back)", "dim"))
    return shown


def _undone(act: dict[str, Any]) -> str:
    if not act.get("undone_at"):
        return ""
    return f"{times.full(act['undone_at'])} by {act.get('undone_by') or 'nobody known'}"


def _parts(act: dict[str, Any]) -> list[str]:
    """What was taken back of an act by itself, and by which undo."""
    taken = act.get("taken_back") or {}
    found = as_one([{"resource": resource, "undo": undo} for resource, undo in taken.items()], "undo")
    short = shortened([each["undo"] for each in found])
    words = [f"{resource_name(each['resource'])} ({short[each['undo']]})" for each in found[:_TOUCHED]]
    return words + ([f"and {more} more"] if (more := len(found) - _TOUCHED) > 0 else [])
