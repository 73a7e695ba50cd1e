"""What the tools of sessions take and give. Times are ISO 8601, UTC, milliseconds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints


def _unicode(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must be valid Unicode") from None
    return text


def _printable(name: str) -> str:
    if not name.isprintable():
        raise ValueError("must be printable characters")
    return name


Text = Annotated[str, AfterValidator(_unicode)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_unicode)]
NewName = Annotated[Name, AfterValidator(_printable)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
MessageState = Literal["due", "running", "done", "cut"]


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ListSessions(_In):
    """Which sessions: those of an agent, or all; `limit` bounds the answer, newest first."""

    agent: Name | None = None
    limit: int = Field(default=50, ge=1, le=500)


class Session(_In):
    """One session; `agent` is needed where several agents have one of that name."""

    session: Name
    agent: Name | None = None


class Open(_In):
    """A conversation to keep here."""

    session: NewName
    title: Annotated[str, StringConstraints(max_length=200)] = ""


class Say(_In):
    """A message of the person's; without `turn` it gets an id."""

    session: Name
    text: Text
    turn: NewName | None = None


class Noted(BaseModel):
    """What the person said at the beginning of a turn; no more than its first characters are kept."""

    model_config = ConfigDict(extra="forbid")
    session: Name
    turn: Name
    text: Text


class Nothing(BaseModel):
    """No answer."""


class Turn(_In):
    """One message of a session."""

    session: Name
    turn: Name
    agent: Name | None = None


class EndTurn(Turn):
    """A run that is over: it came to its end, or was cut off."""

    outcome: Literal["done", "cut"] = "done"


class Preview(Turn):
    """A message to roll back to; with `rows` each effect is told by itself as well."""

    rows: bool = False
    skip_conflicts: bool = False


class Edit(Turn):
    """A message's new text; with `roll_back` what was done from it on is taken back, as `digest` says.

    `skip_conflicts` leaves out what can't be taken back cleanly. A `key` makes a retry safe.
    """

    text: Text
    roll_back: bool = False
    digest: Digest | None = None
    skip_conflicts: bool = False
    key: Name | None = None


class Message(BaseModel):
    """A message of the person's and how far the run it began has come."""

    turn: str
    text: str
    at: str
    state: MessageState


class TurnShown(BaseModel):
    """A turn: how its message begins where that is known, how many acts it caused, and how many stand."""

    turn: str | None
    text: str | None
    state: MessageState | None
    at: str
    acts: int
    standing: int


class Conversation(BaseModel):
    """A session: whose it is, who keeps its messages, and what was done in it.

    `owner` is the module that keeps the messages, and without one they can't be edited; `running` the turn
    that is under way.
    """

    session: str
    agent: str
    owner: str | None
    title: str
    at: str
    last: str
    acts: int
    running: str | None


class Conversations(BaseModel):
    """Sessions, the one that was last active first."""

    sessions: list[Conversation]


class Shown(Conversation):
    """A session with its turns, oldest first."""

    turns: list[TurnShown]


class Messages(BaseModel):
    """A conversation as an agent is to see it, oldest first."""

    messages: list[Message]


class Group(BaseModel):
    """What a roll-back does to things of one kind: `phrase` says it for a person."""

    owner: str
    kind: str
    action: str
    count: int
    phrase: str


class Detail(BaseModel):
    """What a roll-back of an act does to one resource, or why it leaves it as it is.

    `before` and `after` are its values now and then, where its owner tells them and the caller is no agent.
    """

    act: str
    resource: str
    action: str
    reason: str
    before: Any = None
    after: Any = None


class Previewed(BaseModel):
    """What rolling back to a message will do; `digest` stands for the plan that does it.

    `total` counts the things that change and `conflicts` what stands against it; `later` messages would
    vanish from the conversation with an edit.
    """

    groups: list[Group]
    total: int
    conflicts: int
    later: int
    digest: str
    rows: list[Detail] = Field(default_factory=list)


class Edited(BaseModel):
    """A message that says something else now.

    `rolled_back` acts were taken back, by the undo `undo`; `left` is what the vanished turns did and stays.
    """

    turn: str
    rolled_back: int = 0
    undo: str | None = None
    note: str = ""
    left: list[Detail] = Field(default_factory=list)
