"""Dialect: all that the journal asks of a database engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from takeback_acts.rows.changes import Change, Event
from takeback_acts.rows.tables import Catalog, Image, Key, Table, Value

Kind = Literal["unique", "foreign_key", "check", "not_null", "exclusion", "other"]


@dataclass(frozen=True, slots=True)
class Violation:
    """A constraint that a statement broke, by name; what the engine does not tell is empty."""

    kind: Kind
    constraint: str = ""
    table: str = ""
    columns: tuple[str, ...] = ()


class Link(Protocol):
    """A connection, as thin as can be. Its errors are those of the driver."""

    @property
    def rowcount(self) -> int:
        """Rows that the last statement changed."""
        ...

    def execute(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Runs one statement; all the rows it gives."""
        ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        """Runs one statement for each of the rows; how many rows it changed in all."""
        ...


class Dialect(Protocol):
    """One engine. Everything is synchronous, and runs on the thread that owns the link.

    Whatever writes is called inside of an open transaction. Images and keys hold exactly what the database
    does: see `tables.Value`.
    """

    @property
    def name(self) -> str:
        """ "sqlite" or "postgresql"."""
        ...

    @property
    def mark(self) -> str:
        """What stands for a parameter: "?" or "%s"."""
        ...

    def quote(self, name: str) -> str:
        """The name of a table or column as SQL; "schema.table" in its two parts."""
        ...

    def catalog(self, link: Link) -> Catalog:
        """The tables as they are now."""
        ...

    def refresh(self, link: Link, catalog: Catalog) -> Catalog:
        """The same catalog while nothing tells that the schema has changed, else a new one. It must be cheap:
        each journaled write asks for it."""
        ...

    def install(self, link: Link, catalog: Catalog) -> None:
        """Makes the journal's table, and triggers where they are permanent. It does nothing a second time."""
        ...

    def remove(self, link: Link) -> None:
        """Takes away all that `install` made, and nothing else."""
        ...

    def begin(self, link: Link) -> None:
        """Opens a transaction that is going to write."""
        ...

    def commit(self, link: Link) -> None:
        """Commits it."""
        ...

    def rollback(self, link: Link) -> None:
        """Rolls it back; does nothing when the engine has done so."""
        ...

    def savepoint(self, link: Link, name: str) -> None:
        """Sets a savepoint; `name` is a plain word."""
        ...

    def release(self, link: Link, name: str) -> None:
        """Forgets the savepoint and keeps what was done since."""
        ...

    def rollback_to(self, link: Link, name: str) -> None:
        """Takes back what was done since the savepoint, and forgets it."""
        ...

    def arm(self, link: Link, catalog: Catalog, act_id: str) -> None:
        """From now on in this transaction row changes are captured. What was before is forgotten."""
        ...

    def collect(self, link: Link, catalog: Catalog) -> list[Event]:
        """What was captured since `arm` or the last time, in order; it is forgotten then.

        An event without images tells that a row changed of a table that can't be journaled.

        RefusedError("rows.value") when a value can't be captured exactly, naming table and column.
        """
        ...

    def captured(self, link: Link, catalog: Catalog) -> int | None:
        """How many events `collect` would give; None where to count them is no cheaper. Nothing is
        forgotten."""
        ...

    def read(self, link: Link, table: Table, keys: Iterable[Key], *, lock: bool = False) -> dict[Key, Image]:
        """The rows of these keys by the database's own equality, by the key that was asked for.

        A key without a row is not among them. `lock` keeps others from changing the rows until the end.
        """
        ...

    def insert(self, link: Link, table: Table, images: Sequence[Image]) -> None:
        """Inserts whole rows as they are: generated columns left out, identity columns given."""
        ...

    def update(self, link: Link, table: Table, sets: Sequence[tuple[Key, Mapping[str, Value]]]) -> None:
        """Sets columns of the rows of these keys; generated columns are never among them."""
        ...

    def delete(self, link: Link, table: Table, keys: Sequence[Key]) -> None:
        """Deletes the rows of these keys."""
        ...

    def defaults(self, link: Link, table: Table, columns: Sequence[str]) -> tuple[Value, ...]:
        """What the columns hold in a row that does not name them, as it is now."""
        ...

    def spare(self, table: Table, column: str, number: int) -> Value:
        """A value of the column's type that no row is likely to have, another for each number, to be there
        for a moment while rows exchange theirs; None when there is none."""
        ...

    def defer(self, link: Link) -> None:
        """Foreign keys (and what else can be) are checked at the end of the transaction."""
        ...

    def settle(self, link: Link, catalog: Catalog, changes: Sequence[Change]) -> Violation | None:
        """Checks now what COMMIT would check of these changes: raises the driver's error, or tells it."""
        ...

    def violation(self, error: BaseException) -> Violation | None:
        """The constraint that an error of the driver tells of; None when it is something else."""
        ...
