"""A database of PostgreSQL that is open: one connection writes, and the other only reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import psycopg

from takeback_acts.rows import told
from takeback_acts.rows.dialect import Link
from takeback_acts.rows.postgres.dialect import PostgresDialect
from takeback_acts.rows.postgres.link import PostgresLink, open_link, refusals
from takeback_acts.rows.postgres.tables import PostgresCatalog
from takeback_acts.rows.sessions.session import Allowed
from takeback_acts.rows.statements import Statement
from takeback_acts.rows.tables import Catalog

T = TypeVar("T")

_JOURNAL = "SELECT pg_catalog.to_regclass('takeback_journal') IS NOT NULL"
_TRIGGERS = """
SELECT pg_catalog.count(*) FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
WHERE t.tgname = 'takeback_capture' AND t.tgenabled = 'O' AND t.tgparentid = 0
"""


def open_session(
    name: str, target: str, wait: float, statement: float, outside: frozenset[str] = frozenset()
) -> PostgresSession:
    """Connects; raises TakebackError in the words of `failures`, none of which has the address's secret."""
    try:
        return PostgresSession(target, wait, statement, outside)
    except psycopg.Error as error:
        raise told.unreachable(name) from error


class PostgresSession:
    """One database by two connections, the second of which is made when a query first needs it."""

    def __init__(self, target: str, wait: float, statement: float, outside: frozenset[str]) -> None:
        self._target = target
        self._limits = {"statement": statement, "lock": wait}
        self._outside = outside
        self._dialect = PostgresDialect(outside)
        self._link = open_link(target)
        self._second: PostgresLink | None = None
        self._beginning = False
        try:
            self.catalog = self._dialect.catalog(self._link)
        except BaseException:
            self._link.close()
            raise

    @property
    def dialect(self) -> PostgresDialect:
        """The engine's dialect."""
        return self._dialect

    @property
    def link(self) -> PostgresLink:
        """The connection that writes."""
        return self._link

    @property
    def usable(self) -> bool:
        """Whether both connections still stand, as far as it is known."""
        return self._link.usable and (self._second is None or self._second.usable)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, also one that has failed."""
        return self._link.usable and self._link.in_transaction

    @property
    def reader(self) -> Link:
        """The connection that queries; it writes nothing since its transactions may not."""
        if self._second is None:
            self._second = open_link(self._target)
        return self._second

    def refresh(self) -> Catalog:
        """The catalog as it is now; while a transaction writes, as it was when that began."""
        if self._beginning:
            self.catalog = self._dialect.refresh(self._link, self.catalog)
        elif not self._link.in_transaction:
            self.catalog = self._again(lambda: self._dialect.refresh(self._link, self.catalog))
        return self.catalog

    def _again(self, do: Callable[[], T]) -> T:
        """Does it; on a connection that was lost while nothing was open on it, once more on a new one."""
        try:
            return do()
        except psycopg.OperationalError:
            if self._link.usable:
                raise
        self._link.reconnect()
        return do()

    def snapshot(self, fn: Callable[[Link], T]) -> T:
        """What `fn` finds in a transaction that can't write; each of its statements sees one moment."""
        reader = self.reader
        self._dialect.begin(reader, limits=self._limits, read_only=True)
        try:
            return fn(reader)
        finally:
            self._dialect.rollback(reader)

    def begin(self) -> None:
        """Opens a transaction that writes, in which no statement runs, or waits for a lock, for ever."""
        self._again(lambda: self._dialect.begin(self._link, limits=self._limits))
        self._beginning = True
        try:
            self.refresh()
        except BaseException:
            self._dialect.rollback(self._link)
            raise
        finally:
            self._beginning = False

    def run(self, statement: Statement, sql: str, values: Sequence[Any], allowed: Allowed) -> None:
        """Runs a statement as it was given, once its plan has told of which tables it reads."""
        with psycopg.RawCursor(self._link.connection) as cursor:
            if not allowed.everything:
                cursor.execute(f"EXPLAIN (VERBOSE, FORMAT JSON) {sql}".encode(), values or None, prepare=True)
                (plan,) = cursor.fetchone() or ("[]",)
                allowed.reads(sorted(set(self._named(json.loads(plan)))), beside=())
            # Prepared, since what is not can be several statements.
            cursor.execute(sql.encode(), values or None, prepare=True)

    def foresee(self, sql: str, values: Sequence[Any]) -> None:
        """Nothing to do: triggers of ours refuse what can't be captured."""

    def require_fit(self) -> None:
        """Raises RefusedError `rows.superuser` and others, for users and servers that are not for this."""
        for refusal in refusals(self._link):
            raise refusal

    def missing(self) -> str:
        """Whether the journal is there, and each table's trigger."""
        if not self._link.execute(_JOURNAL)[0][0]:
            return "the journal is gone"
        count = len(self.catalog.tables) - int(self._link.execute(_TRIGGERS)[0][0])
        return f"the triggers of {count} tables are gone or switched off" if count > 0 else ""

    def require_captured(self) -> None:
        """Nothing to do: triggers of ours refuse what can't be captured."""

    def interrupt(self) -> None:
        """Ends the statement that runs."""
        self._link.interrupt()
        if (second := self._second) is not None:
            second.interrupt()

    def close(self) -> None:
        """Closes both connections."""
        if self._second is not None:
            self._second.close()
        self._link.close()

    def _named(self, plan: Any) -> Iterator[str]:
        """The tables in a plan, partitions by the name of their table."""
        if isinstance(plan, list):
            for part in plan:
                yield from self._named(part)
        elif isinstance(plan, dict):
            if isinstance(relation := plan.get("Relation Name"), str):
                yield self._table(str(plan.get("Schema", "public")), relation)
            for part in plan.values():
                yield from self._named(part)

    def _table(self, schema: str, relation: str) -> str:
        known = self.catalog.relations if isinstance(self.catalog, PostgresCatalog) else {}
        return known.get((schema, relation), relation if schema == "public" else f"{schema}.{relation}")
