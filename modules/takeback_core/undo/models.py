"""What undo's tools take and give."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

State = Literal["pending", "done", "undoing", "undone", "failed", "abandoned", "unknown", "final"]
Role = Literal["act", "undo", "counter"]
Status = Literal["clean", "merge", "dependents", "conflict", "gone", "not_undoable"]

Id = Annotated[str, StringConstraints(min_length=1, max_length=64)]
ToolName = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*\.[a-z][a-z0-9_]*$", max_length=128)
]
Resource = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*:.+$", max_length=16_384)]
Version = Annotated[str, StringConstraints(min_length=1, max_length=512)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Only = Annotated[list[Resource], Field(max_length=10_000)]


def _is_none(value: object) -> bool:
    return value is None


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Touched(_In):
    """A resource that an act touched, with its version before and after the act."""

    resource: Resource
    before: Version
    after: Version


class RecordAct(_In):
    """An act and how to reverse it. Without an inverse, `final_reason` says why it can't be taken back."""

    tool: ToolName
    input: dict[str, Any] = Field(default_factory=dict)
    summary: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    inverse_tool: ToolName | None = None
    inverse_input: dict[str, Any] = Field(default_factory=dict)
    touched: list[Touched] = Field(default_factory=list, max_length=20_000_000)
    why: list[str] = Field(default_factory=list, max_length=100)
    blobs: list[Digest] = Field(default_factory=list, max_length=20_000)
    final_reason: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None


class Recorded(BaseModel):
    """The id of a new row."""

    id: str


class ConfirmAct(_In):
    """A begun act whose effect has happened; what is given replaces what `begin` foresaw."""

    id: Id
    summary: Annotated[str, StringConstraints(min_length=1, max_length=1000)] | None = None
    inverse_input: dict[str, Any] | None = None
    touched: list[Touched] | None = Field(default=None, max_length=20_000_000)
    blobs: list[Digest] | None = Field(default=None, max_length=20_000)


class ActId(_In):
    """One act."""

    id: Id


class AbandonAct(ActId):
    """A begun act whose effect failed; `certain` when its module knows that nothing of it is left."""

    certain: bool = False


class ActState(BaseModel):
    """The state of one act."""

    id: str
    state: State


class Act(BaseModel):
    """A row of the acted-log as surfaces see it. Times are ISO 8601, UTC, milliseconds.

    `taken_back` names, for each resource that was taken back by itself, the undo that did it.
    """

    id: str
    at: str
    actor: str
    via: str
    actor_kind: Literal["assistant", "agent", "module", "person"]
    agent: str | None
    session: str | None
    turn: str | None
    parent: str | None
    role: Role
    tool: str
    input: dict[str, Any]
    summary: str
    state: State
    undoable: bool
    reason: str | None
    error: dict[str, Any] | None
    tries: int
    why: list[str]
    touched: list[Touched]
    taken_back: dict[str, str] = Field(default_factory=dict)
    undone_at: str | None
    undone_by: str | None
    undone_in: str | None
    pinned: bool


class ListActs(_In):
    """Filters of the log; `since` is ISO 8601, `resource` also finds what lies beneath it.

    With `id_prefix` acts are found by the beginning of their id, those within another act too.
    """

    agent: str | None = None
    session: str | None = None
    turn: str | None = None
    since: str | None = None
    state: State | None = None
    resource: Resource | None = None
    id_prefix: Annotated[str, StringConstraints(pattern=r"^[0-9a-f-]{1,36}$")] | None = None
    limit: int = Field(default=50, ge=1, le=500)
    cursor: str | None = None


class RecordedOn(_In):
    """What the calling module recorded on a resource of its own, or all of a folder around it."""

    resource: Resource
    id: Id | None = None
    limit: int = Field(default=50, ge=1, le=500)
    cursor: str | None = None


class Acts(BaseModel):
    """A page of the log, newest first; `next` is the cursor of the page after it, or null."""

    acts: list[Act]
    next: str | None


class Effect(BaseModel):
    """What happens to one resource; `version` is the one it has afterwards, empty where unknown.

    `holds` is how many entries come or go with a folder's content. Where an owner tells values, `now` is what
    is there, `then` what will be, and of a conflict `base` what the act had left.
    """

    resource: str
    action: str
    reason: str = ""
    version: str = ""
    holds: int | None = None
    now: Any = Field(default=None, exclude_if=_is_none)
    then: Any = Field(default=None, exclude_if=_is_none)
    base: Any = Field(default=None, exclude_if=_is_none)


class Conflict(BaseModel):
    """Why a step isn't clean: versions of base, ours (now) and theirs (to go back to); who wrote since."""

    act: str
    resource: str
    status: Status
    reason: str
    base: str
    ours: str
    theirs: str
    by: str | None = None
    at: str | None = None
    dependents: list[str] = Field(default_factory=list)


class Stay(BaseModel):
    """A resource that a step leaves as it is, since something stands against it or nobody asked for it."""

    resource: str
    why: Literal["dependents", "conflict", "gone", "not_asked"]
    reason: str


class Step(BaseModel):
    """One act of a plan, in the order in which they are undone; `forced` overwrites whatever its status.

    With `part` only some of the act is taken back; it goes on to stand, and `stays` says what of it is left.
    """

    act: str
    summary: str
    status: Status
    forced: bool = False
    reason: str = ""
    effects: list[Effect] = Field(default_factory=list)
    dependents: list[str] = Field(default_factory=list)
    part: bool = False
    stays: list[Stay] = Field(default_factory=list)


class Plan(BaseModel):
    """What an undo will do. The digest stands for all of it."""

    digest: str
    steps: list[Step]
    counts: dict[str, int]
    conflicts: list[Conflict]


class Selection(_In):
    """Which acts: one by `id`, or those of a session, a turn and all after it, an agent, since a time.

    `resource` means those that touched it, what lies in it, or all of a folder around it.
    """

    id: Id | None = None
    session: str | None = None
    turn: str | None = None
    agent: str | None = None
    since: str | None = None
    resource: Resource | None = None


class Preview(Selection):
    """A selection to plan; `force` turns conflicts into overwrites, `dependents` takes later acts along.

    `only` and `skip_conflicts` as in RunUndo and Rewind.
    """

    force: bool = False
    dependents: bool = False
    redo: bool = False
    only: Only = Field(default_factory=list)
    skip_conflicts: bool = False


class RunUndo(_In):
    """Undo one act. A `digest` refuses any plan but the previewed one; a `key` makes a retry safe.

    `only` takes back these resources of it alone, and what lies in them; `skip_conflicts` leaves out what
    isn't clean. The act goes on to stand as long as anything of it does.
    """

    id: Id
    only: Only = Field(default_factory=list)
    digest: Digest | None = None
    force: bool = False
    skip_conflicts: bool = False
    dependents: bool = False
    key: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None


class RunRedo(_In):
    """Redo an act that was undone, or all of an undo."""

    id: Id
    digest: Digest | None = None
    force: bool = False
    key: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None


class Rewind(Selection):
    """Undo many acts, newest first; `skip_conflicts` leaves out what isn't clean and all older on it.

    Of an act whose module can take back a part, only what is in conflict is left out.
    """

    digest: Digest | None = None
    force: bool = False
    skip_conflicts: bool = False
    key: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None


class Result(BaseModel):
    """What became of one act; `already`: it was so before this call, `part`: some of it goes on to stand."""

    id: str
    state: State
    already: bool
    part: bool = Field(default=False, exclude_if=lambda part: not part)


class Outcome(BaseModel):
    """The plan that was executed and what became of each act; `act` is the undo's own row."""

    plan: Plan
    results: list[Result]
    act: str | None = None


class Shown(BaseModel):
    """One act with its children and the plan to take it back."""

    act: Act
    plan: Plan
    children: list[Act]


class Previewed(BaseModel):
    """A plan; nothing was changed."""

    plan: Plan


class Pin(_In):
    """Keep an act beyond its time, or let it go again."""

    id: Id
    pinned: bool = True


class Settle(_In):
    """The person's word on an act whose outcome a crash hid: did it happen or not."""

    id: Id
    happened: bool


class Nothing(_In):
    """No arguments."""


class Collect(_In):
    """What goes: rows older than so many days, by the setting when none are given; pins stay."""

    days: float | None = Field(default=None, gt=0, le=36_500)


class Collected(BaseModel):
    """How many rows retention removed, and how many blobs the rows that are left name."""

    removed: int
    live: int


class Named(BaseModel):
    """The blobs that rows of the log still name, as SHA-256 hex digests."""

    digests: list[str]
