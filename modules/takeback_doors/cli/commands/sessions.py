"""`takeback sessions`"""

from __future__ import annotations

import sys
from typing import Any

import click

from takeback.errors import EXIT_CODES
from takeback_doors.cli.complete import agent_names, session_names, turn_names
from takeback_doors.cli.listing import ListingGroup
from takeback_doors.cli.shell import Shell, with_shell

_agent = click.option(
    "--agent", metavar="NAME", shell_complete=agent_names, help="Whose session, where several have the name."
)
_session = click.argument("session", shell_complete=session_names)
_turn = click.argument("turn", shell_complete=turn_names)


@click.group(cls=ListingGroup)
def sessions() -> None:
    """See conversations with agents, and edit a message of one.

    Without a command it lists them.
    """


@sessions.command("list")
@click.option("--agent", metavar="NAME", shell_complete=agent_names, help="Only this agent's.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@with_shell
def list_sessions(shell: Shell, agent: str | None, limit: int) -> None:
    """List the sessions, the one last active first."""
    found = shell.call("sessions.list", {"agent": agent, "limit": limit})

    def show() -> None:
        from takeback_doors.cli.conversations import show_sessions

        show_sessions(found["sessions"])

    shell.answer(found, show)


@sessions.command("show")
@_session
@_agent
@with_shell
def show_session(shell: Shell, session: str, agent: str | None) -> None:
    """Show a session with its turns: how each message begins, and what was done for it."""
    shown = shell.call("sessions.show", {"session": session, "agent": agent})

    def show() -> None:
        from takeback_doors.cli.conversations import show_turns

        show_turns(shown)

    shell.answer(shown, show)


@sessions.command("edit")
@_session
@_turn
@_agent
@click.option("--text", metavar="TEXT", help="What the message says now; else it is read from stdin.")
@click.option("--roll-back", is_flag=True, help="Take back what was done from this message on.")
@click.option("--skip-conflicts", is_flag=True, help="Leave out what conflicts; it stays as it is, for good.")
@click.option("--digest", metavar="DIGEST", help="Refuse any roll-back but the one with this digest.")
@click.option("--dry-run", is_flag=True, help="Only show what a roll-back will do.")
@click.option("--rows", is_flag=True, help="With --dry-run: each thing by itself as well.")
@click.option("--yes", is_flag=True, help="Don't ask, on a terminal.")
@with_shell
def edit(
    shell: Shell,
    session: str,
    turn: str,
    agent: str | None,
    text: str | None,
    roll_back: bool,
    skip_conflicts: bool,
    digest: str | None,
    dry_run: bool,
    rows: bool,
    yes: bool,
) -> int:
    """Have a message say something else: later ones vanish, and it is run again.

    Without --roll-back what was done since stays, and can't be taken back any more. On a terminal it shows
    what will happen and asks first.
    """
    named = {"session": session, "turn": turn, "agent": agent}
    if not roll_back and (skip_conflicts or digest):
        raise click.UsageError("--skip-conflicts and --digest are of a roll-back: add --roll-back.")
    if dry_run:
        _show_preview(shell, {**named, "skip_conflicts": skip_conflicts, "rows": rows})
        return 0
    said = _text(text)
    if not (yes or digest) and sys.stdin.isatty() and sys.stderr.isatty():
        digest = _confirmed(shell, named, roll_back=roll_back, skip_conflicts=skip_conflicts)
    how = {"roll_back": roll_back, "skip_conflicts": skip_conflicts, "digest": digest}
    edited = shell.daemon().call("sessions.edit", _given({**named, **how}) | {"text": said})
    shell.answer(edited, lambda: _show_edited(edited))
    return EXIT_CODES["conflict"] if edited["left"] else 0


@sessions.command("end")
@_session
@_turn
@_agent
@with_shell
def end(shell: Shell, session: str, turn: str, agent: str | None) -> None:
    """Say that a turn is over whose program has died, so that its session is busy no more."""
    ended = shell.call("sessions.end", {"session": session, "turn": turn, "agent": agent, "outcome": "cut"})

    def show() -> None:
        from takeback_doors.cli.output import say

        say("It is over.")

    shell.answer({"message": ended}, show)


def _text(given: str | None) -> str:
    if given is not None:
        return given
    if sys.stdin.isatty():
        raise click.UsageError("Give the new text with --text, or on stdin.")
    return sys.stdin.read()


def _given(args: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in args.items() if value is not None}


def _confirmed(shell: Shell, named: dict[str, Any], *, roll_back: bool, skip_conflicts: bool) -> str | None:
    """The digest of the roll-back that the person said yes to; raises RefusedError `sessions.declined`."""
    from takeback_doors.cli.conversations import confirm

    told = shell.call("sessions.preview", {**named, "skip_conflicts": skip_conflicts})
    confirm(told, roll_back=roll_back)
    return str(told["digest"]) if roll_back else None


def _show_preview(shell: Shell, asked: dict[str, Any]) -> None:
    told = shell.call("sessions.preview", asked)

    def show() -> None:
        from takeback_doors.cli.conversations import show_preview

        show_preview(told)

    shell.answer(told, show)


def _show_edited(edited: dict[str, Any]) -> None:
    from takeback_doors.cli.conversations import show_edited

    show_edited(edited)
