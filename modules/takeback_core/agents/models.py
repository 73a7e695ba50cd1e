"""What agents' tools take and give."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from takeback.events import Event


class Add(BaseModel):
    """A new agent; `expires` is a number of days from now or a moment in ISO 8601."""

    model_config = ConfigDict(extra="forbid")
    name: str
    roots: list[str] = Field(default_factory=list)
    tables: list[str] = Field(default_factory=list)
    assistant: bool = False
    expires: int | str | None = None


class Named(BaseModel):
    """An agent by name."""

    model_config = ConfigDict(extra="forbid")
    name: str


class Grant(BaseModel):
    """An agent, and a folder or a table: `DATABASE.TABLE`, or `DATABASE.*` for all of a database."""

    model_config = ConfigDict(extra="forbid")
    name: str
    root: str | None = None
    table: str | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.root is None) == (self.table is None):
            raise ValueError("name a root or a table")
        return self


class Nothing(BaseModel):
    """No arguments."""

    model_config = ConfigDict(extra="forbid")


class Token(BaseModel):
    """A token to be recognised; it shows in no repr and in no validation error."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)
    token: str = Field(repr=False, max_length=512)


class Agent(BaseModel):
    """An agent as the person sees it; moments are ISO 8601 in UTC, absent ones null."""

    name: str
    roots: list[str]
    tables: list[str] = Field(default_factory=list)
    assistant: bool
    created: str
    expires: str | None = None
    revoked: str | None = None


class Added(BaseModel):
    """An agent with its token, which is shown this once and stored as a digest only."""

    agent: Agent
    token: str = Field(repr=False)


class Changed(BaseModel):
    """An agent after a change."""

    agent: Agent


class Agents(BaseModel):
    """Every agent, by name."""

    agents: list[Agent]


class Known(BaseModel):
    """Whose token it was, and what that agent may touch."""

    name: str
    roots: list[str]
    tables: list[str] = Field(default_factory=list)
    assistant: bool


class AgentsChanged(Event):
    """An agent was added, revoked, or its token or scope changed."""

    kind: ClassVar[str] = "agents.changed"
    name: str
