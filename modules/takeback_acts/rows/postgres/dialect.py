"""The dialect of PostgreSQL, through psycopg."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress

import psycopg

from takeback.errors import ConflictError, TakebackError
from takeback_acts.rows.changes import Change, Event
from takeback_acts.rows.dialect import Link, Violation
from takeback_acts.rows.postgres import beginning, capture, refusals, rows, stamps, violations
from takeback_acts.rows.postgres.introspection import Reader
from takeback_acts.rows.postgres.link import PostgresLink
from takeback_acts.rows.postgres.order import ordered
from takeback_acts.rows.postgres.refusals import known
from takeback_acts.rows.postgres.tables import PostgresCatalog, PostgresTable
from takeback_acts.rows.postgres.types import quoted
from takeback_acts.rows.tables import Catalog, Image, Key, Table, Value


class PostgresDialect:
    """One for one database. Tables that are `outside` may change without anybody keeping what was."""

    name = "postgresql"
    mark = "%s"

    def __init__(self, outside: Container[str] = ()) -> None:
        self._outside = outside
        self._catalog: PostgresCatalog | None = None
        self._installed: PostgresCatalog | None = None
        self._installing: PostgresCatalog | None = None

    def quote(self, name: str) -> str:
        return ".".join(quoted(part) for part in name.split("."))

    # -- the schema --------------------------------------------------------------------------------------

    def catalog(self, link: Link) -> Catalog:
        self._catalog = Reader(link, self._outside).catalog()
        return self._catalog

    def refresh(self, link: Link, catalog: Catalog) -> Catalog:
        if catalog is self._catalog and not self._differs(link, catalog):
            return catalog
        return self.catalog(link)

    def _differs(self, link: Link, catalog: Catalog) -> bool:
        """Right after the beginning of a transaction it is enough to know of new tables and columns: of the
        rest a trigger speaks up, when it does not know its table any more."""
        if isinstance(link, PostgresLink):
            stale, link.stale = link.stale, False
            if stale or link.armed:
                return stale or not stamps.unchanged(catalog, (link.armed or ())[:3])
        return stamps.shape(link) != _own(catalog).shape

    def install(self, link: Link, catalog: Catalog) -> None:
        capture.install(link, _own(catalog))
        self._installing = _own(catalog)

    def remove(self, link: Link) -> None:
        self._installed = self._installing = None
        capture.remove(link)

    # -- transactions ------------------------------------------------------------------------------------

    def begin(
        self, link: Link, *, limits: Mapping[str, float] | None = None, read_only: bool = False
    ) -> None:
        """`limits` are seconds by "statement" and "lock". A connection that was lost while nothing was open
        on it is made anew. What is read and written depends on settings, which hold for the transaction."""
        if isinstance(link, PostgresLink) and self._catalog is not None and not read_only:
            beginning.armed(link, self._catalog, limits or {})
        else:
            beginning.plainly(link, limits or {}, read_only=read_only)

    def commit(self, link: Link) -> None:
        """TakebackError("rows.unsure") when the connection was lost in the middle of it."""
        try:
            if isinstance(link, PostgresLink):
                link.commit()
            else:
                link.execute("COMMIT")
        except psycopg.OperationalError as error:
            if isinstance(link, PostgresLink) and link.usable:
                raise
            raise TakebackError(
                "rows.unsure",
                "The connection was lost while a transaction was being committed.",
                "The journal in the database tells whether it was.",
            ) from error
        if self._installing is not None:
            self._installed, self._installing = self._installing, None

    def rollback(self, link: Link) -> None:
        self._installing = None
        if isinstance(link, PostgresLink):
            link.forget_posted()
        with suppress(psycopg.OperationalError):  # a connection that is gone has rolled back
            if not isinstance(link, PostgresLink) or (link.usable and link.in_transaction):
                link.execute("ROLLBACK")

    def savepoint(self, link: Link, name: str) -> None:
        link.execute(f"SAVEPOINT {name}")

    def release(self, link: Link, name: str) -> None:
        link.execute(f"RELEASE {name}")

    def rollback_to(self, link: Link, name: str) -> None:
        link.execute(f"ROLLBACK TO {name}; RELEASE {name}")

    def defer(self, link: Link) -> None:
        link.execute("SET CONSTRAINTS ALL DEFERRED")

    def settle(self, link: Link, catalog: Catalog, changes: Sequence[Change]) -> Violation | None:
        link.execute("SET CONSTRAINTS ALL IMMEDIATE")
        return None

    def violation(self, error: BaseException) -> Violation | None:
        return violations.violation(error, self._catalog)

    def refusal(self, error: BaseException) -> TakebackError | None:
        """What a trigger of ours refused a statement for that went past the link; None for other errors."""
        told = refusals.refusal(error) if isinstance(error, psycopg.Error) else None
        if isinstance(told, ConflictError):
            self._catalog = None
        return told

    # -- capture -----------------------------------------------------------------------------------------

    def arm(self, link: Link, catalog: Catalog, act_id: str) -> None:
        if catalog is not self._installed and catalog is not self._installing:
            self.install(link, catalog)
        if not (isinstance(link, PostgresLink) and link.armed):
            capture.arm(link, act_id)

    def collect(self, link: Link, catalog: Catalog) -> list[Event]:
        return ordered(capture.collect(link, _own(catalog)), catalog.tables)

    def captured(self, link: Link, catalog: Catalog) -> int | None:
        return None

    # -- rows --------------------------------------------------------------------------------------------

    def read(self, link: Link, table: Table, keys: Iterable[Key], *, lock: bool = False) -> dict[Key, Image]:
        with known(table.name):
            return rows.read(link, _table(table), keys, lock=lock)

    def insert(self, link: Link, table: Table, images: Sequence[Image]) -> None:
        with known(table.name):
            rows.insert(link, _table(table), images)

    def update(self, link: Link, table: Table, sets: Sequence[tuple[Key, Mapping[str, Value]]]) -> None:
        with known(table.name):
            rows.update(link, _table(table), sets)

    def delete(self, link: Link, table: Table, keys: Sequence[Key]) -> None:
        with known(table.name):
            rows.delete(link, _table(table), keys)

    def defaults(self, link: Link, table: Table, columns: Sequence[str]) -> tuple[Value, ...]:
        return rows.defaults(link, _table(table), columns)

    def spare(self, table: Table, column: str, number: int) -> Value:
        return rows.spare(_table(table), column, number)


def _own(catalog: Catalog) -> PostgresCatalog:
    assert isinstance(catalog, PostgresCatalog)
    return catalog


def _table(table: Table) -> PostgresTable:
    assert isinstance(table, PostgresTable)
    return table
