"""Settings: section `[rows]` of takeback.toml."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

_DATABASE = r"[a-z0-9][a-z0-9_-]{0,62}"

OneTable = Annotated[str, StringConstraints(pattern=rf"^{_DATABASE}\.[^{{}}*]+$", max_length=400)]
"""`database.table`; the table may be one of another schema, `schema.table`."""

OneColumn = Annotated[
    str, StringConstraints(pattern=rf"^{_DATABASE}\.[^{{}}*]+\.[^.{{}}*]+$", max_length=400)
]
"""`database.table.column`."""

SomeColumns = Annotated[
    str, StringConstraints(pattern=rf"^{_DATABASE}\.[^{{}}*]+\.\{{[^{{}}]+\}}$", max_length=2000)
]
"""`database.table.{column,column}`."""


OneFile = Annotated[
    str,
    StringConstraints(
        pattern=rf"^{_DATABASE}\.[^{{}}*=]+\.[^.{{}}*=]+ *= */[^{{}}\x00]*(\{{\}}[^{{}}\x00/]*)?$",
        max_length=5000,
    ),
]
"""`database.table.column = /folder`, or `/path/with/{}` where the value goes."""


class RowsSettings(BaseModel):
    """`hidden` are columns that no agent sees or sets.

    `together` are columns that belong together: where one of them conflicts, all do. `counters` are taken
    back by what was added, whatever they are now. `derived` are columns that the database keeps by itself,
    which no undo compares or promises. `outside` are tables that triggers write to and no undo looks at.
    `files` are columns that name a file, and where it lies: it comes back with its row.
    A query answers at most `most_answered` rows; an act that would change more than `most_changed` is
    refused. A statement may run for `statement_seconds`, and waits `wait_seconds` for what others hold. A
    connection that was not used for `idle_seconds` is closed.
    """

    model_config = ConfigDict(extra="forbid")
    hidden: list[OneColumn] = Field(default_factory=list)
    together: list[SomeColumns] = Field(default_factory=list)
    counters: list[OneColumn] = Field(default_factory=list)
    derived: list[OneColumn] = Field(default_factory=list)
    outside: list[OneTable] = Field(default_factory=list)
    files: list[OneFile] = Field(default_factory=list)
    most_answered: int = Field(default=1000, ge=1, le=100_000)
    most_changed: int = Field(default=10_000, ge=1, le=10_000_000)
    statement_seconds: float = Field(default=30.0, gt=0, le=86_400)
    wait_seconds: float = Field(default=10.0, gt=0, le=3600)
    idle_seconds: float = Field(default=300.0, gt=0)
