"""The dialect of PostgreSQL, through psycopg."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress

import psycopg

from takeback.errors import ConflictError, RefusedError, TakebackError
from takeback_acts.rows.changes import Change, Event
from takeback_acts.rows.dialect import Link, Violation
from takeback_acts.rows.postgres import beginning, capture, introspection, rows, triggers, violations
from takeback_acts.rows.postgres.introspection import PostgresCatalog, PostgresTable, Reader
from takeback_acts.rows.postgres.link import PostgresLink
from takeback_acts.rows.postgres.order import ordered
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
        seen = link.armed if isinstance(link, PostgresLink) else None
        if catalog is not self._catalog:
            return self.catalog(link)
        stamp = seen or link.execute(introspection.stamp_sql(catalog.tables.values()))[0]
        return catalog if introspection.unchanged(catalog, stamp) else self.catalog(link)

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
        """What a trigger of ours refused a statement for; None when the error is another."""
        state = getattr(error, "sqlstate", None)
        table = getattr(getattr(error, "diag", None), "table_name", None) or "a table"
        if state == triggers.CHANGED:
            return ConflictError(
                "rows.changed",
                f"The columns of {table} have changed since the database was looked at.",
                "Try again: it is looked at anew.",
                retryable=True,
            )
        if state == triggers.TRUNCATED:
            return RefusedError(
                "rows.truncate", f"TRUNCATE of {table} can't be taken back.", "Use DELETE, which can."
            )
        if state == triggers.UNJOURNALED:
            return RefusedError("rows.unjournaled", f"{table} can't be journaled: {self._reason(error)}.")
        return None

    def _reason(self, error: BaseException) -> str:
        diagnosis = getattr(error, "diag", None)
        if self._catalog is None or diagnosis is None:
            return "see `rows.tables`"
        name = self._catalog.relations.get((diagnosis.schema_name or "", diagnosis.table_name or ""), "")
        return self._catalog.refused.get(name, "see `rows.tables`")

    # -- capture -----------------------------------------------------------------------------------------

    def arm(self, link: Link, catalog: Catalog, act_id: str) -> None:
        if catalog is not self._installed and catalog is not self._installing:
            self.install(link, catalog)
        if not (isinstance(link, PostgresLink) and link.armed):
            capture.arm(link, act_id)

    def collect(self, link: Link, catalog: Catalog) -> list[Event]:
        return ordered(capture.collect(link, _own(catalog)), catalog.tables)

    # -- rows --------------------------------------------------------------------------------------------

    def read(self, link: Link, table: Table, keys: Iterable[Key], *, lock: bool = False) -> dict[Key, Image]:
        return rows.read(link, _table(table), keys, lock=lock)

    def insert(self, link: Link, table: Table, images: Sequence[Image]) -> None:
        rows.insert(link, _table(table), images)

    def update(self, link: Link, table: Table, sets: Sequence[tuple[Key, Mapping[str, Value]]]) -> None:
        rows.update(link, _table(table), sets)

    def delete(self, link: Link, table: Table, keys: Sequence[Key]) -> None:
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
