"""What the tools take and give that tell of sessions and their turns."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from takeback_core.undo.models import Plan, Result


class SessionsOf(BaseModel):
    """Which sessions to tell of; `limit` bounds the answer."""

    model_config = ConfigDict(extra="forbid")
    agent: str | None = None
    session: str | None = None
    limit: int = Field(default=50, ge=1, le=500)


class TurnsOf(BaseModel):
    """The session whose turns to tell of."""

    model_config = ConfigDict(extra="forbid")
    session: str
    agent: str | None = None


class Keyed(BaseModel):
    """The key that an undo was asked for with."""

    model_config = ConfigDict(extra="forbid")
    key: str


class KeyedUndo(BaseModel):
    """What became of an undo; nothing, where none was made or it was let go, and `open` while it may be."""

    act: str | None = None
    open: bool = False
    plan: Plan | None = None
    results: list[Result] = Field(default_factory=list)


class SessionActed(BaseModel):
    """A session: whose it is, its first and last act, and how many it has."""

    session: str
    agent: str
    at: str
    last: str
    acts: int


class SessionsActed(BaseModel):
    """Sessions, the one last active first."""

    sessions: list[SessionActed]


class TurnActed(BaseModel):
    """A turn: when it first acted, how many acts it has, and how many of them stand."""

    turn: str | None
    at: str
    acts: int
    standing: int


class TurnsActed(BaseModel):
    """The turns of a session, oldest first."""

    turns: list[TurnActed]
