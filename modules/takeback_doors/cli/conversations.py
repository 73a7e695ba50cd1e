"""Conversations as people see them: sessions, their turns, and what going back to a message does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from takeback.errors import RefusedError
from takeback_doors.cli import screen
from takeback_doors.cli.output import say
from takeback_doors.cli.plain import resource_name, visible
from takeback_doors.cli.times import short

_SHOWN = 80


def show_sessions(found: Sequence[dict[str, Any]]) -> None:
    """Print sessions, a line each."""
    rows = [
        (
            one["session"],
            one["agent"],
            short(one["last"]),
            str(one["acts"]),
            f"{one['title']} (running)".strip() if one["running"] else one["title"],
        )
        for one in found
    ]
    columns = ("Session", "Agent", "Last", "Acts", "Title")
    screen.show_table(columns, rows, wide="Session", none="No sessions yet.")


def show_turns(shown: dict[str, Any]) -> None:
    """Print a session and its turns, a line each."""
    owner = shown["owner"] or "the agent's own program: its messages can't be edited here"
    screen.show_fields(
        [
            ("Session", shown["session"]),
            ("Agent", shown["agent"]),
            ("Title", shown["title"]),
            ("Kept by", owner),
            ("Running", shown["running"] or ""),
        ]
    )
    screen.console().print()
    rows = [
        (
            one["turn"] or "-",
            short(one["at"]),
            _acts(one),
            screen.state(one["state"] or ""),
            _line(one["text"]),
        )
        for one in shown["turns"]
    ]
    columns = ("Turn", "When", "Acts", "State", "Message")
    screen.show_table(columns, rows, wide="Message", none="Nothing was said or done in it yet.")


def show_preview(told: dict[str, Any], *, stderr: bool = False) -> None:
    """Print what a roll-back will do, in groups, and where it was asked for each thing by itself."""
    out = screen.console(stderr=stderr)
    for line in [group["phrase"] for group in told["groups"]] or ["Nothing will be taken back."]:
        out.print(screen.text(line))
    if told["conflicts"]:
        words = f"{told['conflicts']} in conflict with later changes"
        out.print(screen.text(words, "red"))
    for row in told["rows"]:
        why = f" ({row['reason']})" if row["reason"] else ""
        out.print(screen.text(f"  {row['action']} {resource_name(row['resource'])}{why}"))
    if later := _later(told):
        out.print(screen.text(later))


def confirm(told: dict[str, Any], *, roll_back: bool) -> None:
    """Show what an edit will do and ask; raises RefusedError `sessions.declined` on a no."""
    if roll_back:
        show_preview(told, stderr=True)
        question = "Roll this back and edit the message? It can't be redone"
    else:
        say(_later(told) or "No message comes after it.")
        question = "Edit it? What was done since stays, and can't be taken back any more"
    if not click.confirm(question, err=True):
        raise RefusedError("sessions.declined", "You said no; nothing was changed")


def show_edited(edited: dict[str, Any]) -> None:
    """Say what an edit came to, and on stderr what was left."""
    count = edited["rolled_back"]
    taken = f" {count} act{'' if count == 1 else 's'} taken back." if count else ""
    screen.console().print(screen.text(f"The message was edited, and is to be run again.{taken}"))
    if edited["note"]:
        say(edited["note"])
    for one in edited["left"]:
        why = f" ({one['reason']})" if one["reason"] else ""
        say(f"Left as it is: {resource_name(one['resource']) or one['act']}{why}")


def _later(told: dict[str, Any]) -> str:
    count = told["later"]
    if not count:
        return ""
    return f"{count} later message{' vanishes' if count == 1 else 's vanish'} from the conversation."


def _acts(one: dict[str, Any]) -> str:
    gone = one["acts"] - one["standing"]
    return f"{one['acts']}, {gone} not standing" if gone else str(one["acts"])


def _line(text: str | None) -> str:
    line = visible(" ".join((text or "").split()))
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
