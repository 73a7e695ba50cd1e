"""Sessions: an open database with what is known of it, on the thread of its worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from takeback_acts.rows.dialect import Dialect, Link
from takeback_acts.rows.statements import Statement
from takeback_acts.rows.tables import Catalog

T = TypeVar("T")


class Session(Protocol):
    """A connection that writes and one that can't.

    `catalog` is renewed by `refresh` when the schema has changed.
    """

    catalog: Catalog

    @property
    def dialect(self) -> Dialect:
        """The engine's dialect."""
        ...

    @property
    def link(self) -> Link:
        """The connection that writes."""
        ...

    @property
    def usable(self) -> bool:
        """Whether the connections still stand."""
        ...

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction that `begin` opened is still there."""
        ...

    @property
    def reader(self) -> Link:
        """What can't write, whatever it is told. It is not within the transaction of `link`."""
        ...

    def refresh(self) -> Catalog:
        """The catalog as it is now; within a transaction it stays true to its end."""
        ...

    def snapshot(self, fn: Callable[[Link], T]) -> T:
        """What `fn` finds in a transaction that can't write."""
        ...

    def run(self, statement: Statement, sql: str, values: Sequence[Any], allowed: Allowed) -> None:
        """Runs a statement as it was given, when `allowed` finds nothing against what it would do."""
        ...

    def begin(self) -> None:
        """Opens a transaction that is going to write, in which no statement runs for ever."""
        ...

    def foresee(self, sql: str, values: Sequence[Any]) -> None:
        """Raises what `Catalog.table` raises when a statement of takeback's own could, by way of triggers or
        cascades, change what can't be captured."""
        ...

    def require_fit(self) -> None:
        """Raises RefusedError when the database must not be connected, such as by a superuser of it."""
        ...

    def missing(self) -> str:
        """What of takeback's own is not there as it should be, in words; empty when all is well."""
        ...

    def require_captured(self) -> None:
        """Raises RefusedError `rows.not_captured` when the transaction has changed what was not captured."""
        ...

    def interrupt(self) -> None:
        """Ends the statement that runs, if one does; the only method that is called from another thread."""
        ...

    def close(self) -> None:
        """Lets go of everything; what is not committed is rolled back."""
        ...


class Allowed(Protocol):
    """What is asked before a caller's statement runs; each method raises where the answer is no."""

    @property
    def everything(self) -> bool:
        """Whether no answer would be no."""
        ...

    def reads(self, tables: Iterable[str], beside: Iterable[str]) -> None:
        """Tables of which something is read; those `beside` are read also to keep their references whole."""

    def calls(self, functions: Iterable[str]) -> None:
        """Functions that it calls, in small letters."""
