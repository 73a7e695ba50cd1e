"""What the audit's tools take and give."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """`[audit]` in takeback.toml: how many days rows are kept."""

    model_config = ConfigDict(extra="forbid")
    days: int = Field(default=30, ge=1, le=36_500)


class Query(BaseModel):
    """Which rows, newest first; `since` is ISO 8601, `cursor` the `next` of an earlier answer."""

    model_config = ConfigDict(extra="forbid")
    caller: str | None = None
    tool: str | None = None
    allowed: bool | None = None
    since: str | None = None
    limit: int = Field(default=100, ge=1, le=1000)
    cursor: int | None = Field(default=None, ge=1)


class ById(BaseModel):
    """A row by its call's id."""

    model_config = ConfigDict(extra="forbid")
    id: str


class Row(BaseModel):
    """One routed call; `rule` decided for `reason`, `outcome` is `ok`, `cancelled` or an error's code."""

    id: str
    parent: str | None
    at: str
    caller: str
    origin: str
    tool: str
    allowed: bool
    rule: str
    reason: str
    outcome: str
    duration_us: int


class Rows(BaseModel):
    """A page of rows, and the cursor of the next one."""

    rows: list[Row]
    next: int | None


class One(BaseModel):
    """A row, and the calls that were made within it, oldest first."""

    row: Row
    calls: list[Row]
