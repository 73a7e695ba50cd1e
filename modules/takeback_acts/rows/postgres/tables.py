"""Tables: a catalog's tables with what only PostgreSQL has of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from takeback_acts.rows.postgres.types import quoted
from takeback_acts.rows.tables import Catalog, Table

DEFAULT_SCHEMA = "public"


@dataclass(frozen=True)
class PostgresTable(Table):
    """A table with what SQL needs for it: `columns_sql` and so on are in the order of `columns`.

    `texts` are SQL of each column's text, with `{}` where the row is named; `casts` the types of the columns,
    and `types` their oids: a type that was made anew under its name is another. `equals` are the operators
    that the key is compared by, and `key_name` is the name of its constraint. `width` counts columns, dropped
    ones too.
    """

    oid: int = 0
    width: int = 0
    schema: str = ""
    relation: str = ""
    whole: bool = False
    texts: tuple[str, ...] = ()
    casts: tuple[str, ...] = ()
    types: tuple[int, ...] = ()
    equals: tuple[str, ...] = ()
    key_name: str = ""
    statements: dict[Any, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def sql(self) -> str:
        """The table as SQL, without tables that inherit from it; partitions are the table itself."""
        return self.full if self.whole else f"ONLY {self.full}"

    @property
    def full(self) -> str:
        """The table's name as SQL, whatever the search path."""
        return f"{quoted(self.schema)}.{quoted(self.relation)}"


@dataclass(frozen=True)
class Guarded:
    """A table that can't be journaled; `ours` when triggers can keep it from being changed unseen."""

    oid: int
    name: str
    full: str
    ours: bool


@dataclass(frozen=True)
class PostgresCatalog(Catalog):
    """A catalog with what only PostgreSQL has.

    `guarded` are the tables that can't be journaled and yet be written, `partitions` those of the tables that
    can. `late` are constraint triggers that run at COMMIT unless they are asked to before. `relations` are
    the names of tables by schema and name, partitions too.
    """

    guarded: tuple[Guarded, ...] = ()
    partitions: tuple[Guarded, ...] = ()
    late: tuple[str, ...] = ()
    relations: Mapping[tuple[str, str], str] = field(default_factory=dict)
    shape: str = ""
    statements: dict[Any, str] = field(default_factory=dict, compare=False, repr=False)
