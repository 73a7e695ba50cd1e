"""The events by which surfaces and owners follow conversations."""

from __future__ import annotations

from typing import ClassVar

from takeback.events import Event


class SessionsSaid(Event):
    """A message is to be run: a new one, or one whose text was edited."""

    kind: ClassVar[str] = "sessions.said"
    agent: str
    session: str
    turn: str


class SessionsEdited(Event):
    """A conversation ends with this message now; what was said later has vanished."""

    kind: ClassVar[str] = "sessions.edited"
    agent: str
    session: str
    turn: str
