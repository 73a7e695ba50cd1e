"""What is said to those who ask for what can't be had of a session."""

from __future__ import annotations

import shlex

from takeback.errors import ConflictError, NotFoundError, RefusedError, UsageError

MOST_TEXT = 1_000_000


def unknown(session: str) -> NotFoundError:
    """No such session, or none that this caller may see."""
    return NotFoundError(
        "sessions.unknown", f"There is no session {session[:80]!r}", "`sessions.list` lists them."
    )


def unknown_turn(turn: str) -> NotFoundError:
    """No such message in this session."""
    return NotFoundError(
        "sessions.unknown_turn",
        f"The session has no message {turn[:80]!r}",
        "`sessions.show` lists its messages.",
    )


def ambiguous(session: str, agents: list[str]) -> UsageError:
    """A name that several agents gave to a session."""
    return UsageError(
        "sessions.ambiguous",
        f"Several agents have a session {session[:80]!r}: {', '.join(agents)}",
        "Name the agent as well.",
    )


def not_editable(session: str, turn: str) -> RefusedError:
    """A conversation that nobody here can truncate and run again."""
    return RefusedError(
        "sessions.not_editable",
        f"The messages of session {session[:80]!r} are kept by the agent's own program, which can't be made"
        " to forget them",
        "What it did can be taken back all the same: takeback rewind"
        f" --session {shlex.quote(session)} --turn {shlex.quote(turn)}",
    )


def require_text(text: str) -> None:
    """Raises UsageError `sessions.text` for a message that is empty or too long."""
    if not text.strip():
        raise UsageError("sessions.text", "The message is empty", "Give it a text.")
    if len(text) > MOST_TEXT:
        raise UsageError(
            "sessions.text",
            f"The message has {len(text)} characters, and {MOST_TEXT} are the most that is kept",
            "Put what is long in a file, and name that in the message.",
        )


def no_roll_back() -> UsageError:
    """A digest of a plan where nothing is to be planned."""
    return UsageError(
        "sessions.digest",
        "A digest is of a roll-back, and none was asked for",
        "Ask for the roll-back, or leave the digest out.",
    )


def key_reused() -> UsageError:
    """A key that another edit had."""
    return UsageError(
        "sessions.key_reused", "This key was given to another edit", "Give each request a key of its own."
    )


def unsettled() -> ConflictError:
    """An edit that was cut off and can be neither finished nor let go as long as an owner is away."""
    return ConflictError(
        "session.unsettled",
        "An edit of this session was cut off, and what it takes back can't be settled yet",
        "`takeback log` shows it; switch on the module that owns what it touched.",
        retryable=True,
    )


def turn_taken(turn: str) -> ConflictError:
    """A message of that name is there already."""
    return ConflictError(
        "sessions.turn_taken",
        f"The session has a message {turn[:80]!r} already",
        "Leave `turn` out to be given a new one.",
    )
