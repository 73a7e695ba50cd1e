"""What the tools of the hooks' door take and give."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Nothing(BaseModel):
    """No arguments."""

    model_config = ConfigDict(extra="forbid")


class Which(BaseModel):
    """A process by its number."""

    model_config = ConfigDict(extra="forbid")
    pid: int = Field(ge=1)


class Descent(BaseModel):
    """The agent that a process descends from, with its session and folders; null for one of the person's."""

    agent: str | None = None
    session: str | None = None
    turn: str | None = None
    roots: list[str] = Field(default_factory=list)


class Connect(BaseModel):
    """An agent to connect, for all of the person's projects or for the one in `folder`.

    `environ` are the variables that say where the agent keeps its settings.
    """

    model_config = ConfigDict(extra="forbid")
    agent: str
    folder: str | None = None
    environ: dict[str, str] = Field(default_factory=dict)


class Connected(BaseModel):
    """What was put into an agent's settings or taken out: the file, and where it is kept as it was."""

    agent: str
    path: str
    changed: bool
    events: list[str] = Field(default_factory=list)
    backup: str | None = None
    note: str = ""


class NotCaptured(BaseModel):
    """Something that an agent did, or may have done, and that can't be taken back; `at` is ISO 8601, UTC."""

    at: str
    agent: str
    session: str
    what: str
    why: str


class Status(BaseModel):
    """Where gates find the door, what is known and what is under way, and what was not captured of late."""

    socket: str
    spool: str
    spooled: int
    sessions: int
    open_calls: int
    not_captured: list[NotCaptured]
