"""What the tools of rows take and give."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
)

Name = Annotated[str, StringConstraints(min_length=1, max_length=300)]
Url = Annotated[str, StringConstraints(min_length=1, max_length=8192)]
Resource = Annotated[str, StringConstraints(pattern=r"^rows:.+/.+/", max_length=16_384)]


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Binary(_In):
    """Bytes, in base64."""

    base64: str


Value = StrictBool | StrictInt | StrictFloat | StrictStr | Binary | None
"""A value of a column. What JSON has no form for, such as a date or an exact number, is text."""


class Test(_In):
    """What a column is compared with, in ways that must all hold. `like` has `%` and `_`."""

    eq: Value = None
    ne: Value = None
    gt: Value = None
    ge: Value = None
    lt: Value = None
    le: Value = None
    like: StrictStr | None = None
    in_: list[Value] | None = Field(default=None, alias="in", max_length=1000)
    is_null: StrictBool | None = None


class Connect(_In):
    """A database to connect, and the name it is to have here."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)
    name: Name
    url: Url = Field(repr=False)


class Disconnect(_In):
    """A database to let go; with `force` also when acts on it could still be taken back."""

    name: Name
    force: bool = False


class Nothing(_In):
    """No arguments."""


class Database(BaseModel):
    """A connected database; `url` without its password. `tables` can be changed, `refused` can't, and why."""

    name: str
    engine: Literal["sqlite", "postgresql"]
    url: str
    connected: str
    tables: list[str] | None = None
    refused: dict[str, str] | None = None


class Databases(BaseModel):
    """The connected databases, by name."""

    databases: list[Database]


class Connected(BaseModel):
    """A database that is connected, and what there is to say of it."""

    database: Database
    notes: list[str] = Field(default_factory=list)


class Disconnected(BaseModel):
    """A database that was let go; `warning` says what of it could not be tidied up."""

    name: str
    warning: str = ""


class Where(_In):
    """A connected database; it may be left out when there is just one."""

    database: Name | None = None


class Column(BaseModel):
    """A column as the database declares it."""

    name: str
    type: str
    nullable: bool
    generated: bool


class Table(BaseModel):
    """A table that can be read and changed."""

    database: str
    name: str
    columns: list[Column]
    key: list[str]


class Tables(BaseModel):
    """The tables that the caller may touch."""

    tables: list[Table]


class Query(Where):
    """Rows of one table.

    `where` says of each column what it equals, or how it compares. `order` names columns, with a `-` before
    those that go down; without it the rows come by their key.
    """

    table: Name
    where: dict[Name, Value | Test] = Field(default_factory=dict, max_length=100)
    columns: list[Name] | None = Field(default=None, max_length=2000)
    order: list[Name] = Field(default_factory=list, max_length=100)
    limit: int = Field(default=100, ge=1, le=100_000)
    offset: int = Field(default=0, ge=0, le=(1 << 63) - 1)


class Rows(BaseModel):
    """Rows, each by its columns' names; `more` says that there are others behind them."""

    table: str
    rows: list[dict[str, Any]]
    more: bool


class Insert(Where):
    """A row to add; columns that are left out get what the database gives them."""

    table: Name
    row: dict[Name, Value] = Field(max_length=2000)


class Update(Where):
    """Columns to set in the row of a key; a key of one column may be its bare value."""

    table: Name
    key: dict[Name, Value] | Value
    set: dict[Name, Value] = Field(min_length=1, max_length=2000)


class Delete(Where):
    """The row of a key, to be removed with what the database removes along with it."""

    table: Name
    key: dict[Name, Value] | Value


class Execute(Where):
    """One INSERT, UPDATE, DELETE or MERGE; its parameters are `?` on SQLite, and `$1`, `$2` on PostgreSQL."""

    sql: Annotated[str, StringConstraints(min_length=1, max_length=1_000_000)]
    parameters: list[Value] = Field(default_factory=list, max_length=30_000)


class RowKey(BaseModel):
    """One row, by its key."""

    table: str
    key: dict[str, Any]


class Done(BaseModel):
    """What an act changed: how many rows of each table, and the keys of the first hundred.

    `act` is its id in the log; null where nothing had to be changed.
    """

    act: str | None
    database: str
    summary: str
    changed: dict[str, int]
    rows: list[RowKey] = Field(default_factory=list)


class Resources(_In):
    """Resources of rows."""

    resources: list[Resource] = Field(max_length=20_000_000)


class Versions(BaseModel):
    """The version of each resource."""

    versions: dict[str, str]


class Restore(_In):
    """An entry of a database's journal to take back; with `only` just these of what it touched."""

    database: Name
    entry: Annotated[str, StringConstraints(pattern=r"^[0-9a-f-]{36}$")]
    only: list[Resource] | None = Field(default=None, max_length=20_000_000)


class Effect(BaseModel):
    """What happens to one resource; `version` is the one it has afterwards.

    `constraint` names what the database would not have had broken. `now` and `then` are the value before and
    after, of a row as a whole its columns; of a conflict `base` is what the act left there.
    """

    resource: str
    action: Literal["restore", "delete", "merge", "skip", "conflict", "gone"]
    reason: str = ""
    version: str = ""
    constraint: str = ""
    now: Any = None
    then: Any = None
    base: Any = None


class Restored(BaseModel):
    """The effects of a restore; `act` is the log's row of it, null where nothing had to be changed."""

    effects: list[Effect]
    act: str | None = None
    notes: list[str] = Field(default_factory=list)


class Happened(_In):
    """Inverses as they were recorded, of acts whose outcome a crash hid."""

    inputs: list[dict[str, Any]] = Field(max_length=100_000)


class Touched(BaseModel):
    """A resource that an act touched, with its version before and after."""

    resource: str
    before: str
    after: str


class Happening(BaseModel):
    """What an act really did."""

    touched: list[Touched]
    summary: str


class Answers(BaseModel):
    """For each inverse what its act did; null where it did not happen."""

    answers: list[Happening | None]
