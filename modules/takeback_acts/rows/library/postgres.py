"""PostgreSQL on an app's connection: what capture and undo set there is put back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from takeback_acts.rows.changes import Event
from takeback_acts.rows.dialect import Link
from takeback_acts.rows.library.failures import missing, schema_changed
from takeback_acts.rows.library.inserts import inserts
from takeback_acts.rows.library.place import Place
from takeback_acts.rows.postgres import capture, stamps, triggers
from takeback_acts.rows.postgres.dialect import PostgresDialect
from takeback_acts.rows.postgres.order import ordered
from takeback_acts.rows.postgres.tables import PostgresCatalog
from takeback_acts.rows.postgres.types import SETTINGS
from takeback_acts.rows.tables import Catalog

_ASK = "SELECT " + ", ".join(f"pg_catalog.current_setting('{name}')" for name in SETTINGS)
_DISARM = "SELECT pg_catalog.set_config('takeback.act', '', true)"
# What `capture.arm` does, in the statement that looks at the schema.
_ARMED = "pg_catalog.current_setting('takeback.spilt', true), " + ", ".join(
    f"pg_catalog.set_config('takeback.{name}', '{value}', true)"
    for name, value in {"act": "takeback", "rows": "", "spilt": ""}.items()
)
_NEWEST = f", (SELECT s.newest FROM ({stamps.stamp_sql(())}) AS s(newest, armed, wider))"
_COLLECT = triggers.COLLECT.rstrip() + _NEWEST
_COLLECT_LAST = _COLLECT + ", pg_catalog.set_config('takeback.act', '', true)"
_HOME = "SELECT pg_catalog.to_regclass('takeback_journal') IS NOT NULL"
_DEFERRED = """
SELECT pg_catalog.string_agg(pg_catalog.format('%I.%I', n.nspname, k.conname), ', ')
FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_namespace n ON n.oid = k.connamespace
WHERE k.condeferrable AND k.condeferred AND k.conparentid = 0
"""
# One rewind of a group at a time: a second waits for the first, and sees what is left then.
_ALONE = "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(%s, 7020387))"


class AppPostgres(PostgresDialect):
    """The dialect of one connection."""

    def __init__(self, place: Place, outside: Iterable[str]) -> None:
        super().__init__(frozenset(outside))
        self._place = place
        self._ending: bool | None = None
        self.handed: list[Event] | None = None

    def known(self, link: Link) -> Catalog:
        """The tables, from the last time if somebody looked already."""
        if self._place.catalog is None:
            self._place.catalog = self.catalog(link)
        assert isinstance(self._place.catalog, PostgresCatalog)
        self._catalog = self._place.catalog
        return self._catalog

    def refresh(self, link: Link, catalog: Catalog) -> Catalog:
        found = super().refresh(link, catalog)
        self._place.catalog = found
        return found

    def begin_act(self, link: Link, catalog: Catalog, act_id: str) -> Catalog:
        """From now on changes are captured; the catalog as far as an act needs it. Of what else changed in
        the schema, the triggers speak up."""
        if self._place.catalog is None:
            catalog = self.known(link)
        elif self._place.installed is catalog:
            row = link.execute(self._beginning(catalog))[0]
            if stamps.unchanged(catalog, tuple(row[:3])) and row[3] != "on":
                return catalog
            catalog = self._place.catalog = self.catalog(link)
        self.arm(link, catalog, act_id)
        return catalog

    def _beginning(self, catalog: Catalog) -> str:
        known = self._place.beginning
        if known is None or known[0] is not catalog:
            sql = f"{stamps.stamp_sql(catalog.tables.values())}, {_ARMED}"
            known = self._place.beginning = (catalog, sql)
        return known[1]

    def is_home(self, link: Link) -> bool:
        """Whether the journal's table is there."""
        return bool(link.execute(_HOME)[0][0])

    def start(self, link: Link) -> bool:
        """The driver has begun the transaction."""
        return False

    def quit(self, link: Link) -> None:
        """There is none of ours to end."""

    def arm(self, link: Link, catalog: Catalog, act_id: str) -> None:
        if catalog is not self._place.installed:
            if not self.is_home(link):
                raise missing()
            watched = _Watched(link)
            assert isinstance(catalog, PostgresCatalog)
            capture.install(watched, catalog)
            if not watched.made:
                self._place.installed = catalog
        capture.arm(link, act_id)

    def collect(self, link: Link, catalog: Catalog) -> list[Event]:
        if self.handed is not None:
            handed, self.handed = self.handed, None
            return handed
        if self._ending is None:
            return super().collect(link, catalog)
        asking = _Asking(link, last=self._ending)
        assert isinstance(catalog, PostgresCatalog)
        events = capture.collect(asking, catalog)
        if not inserts(events, catalog):
            events = ordered(events, catalog.tables)
        if asking.newest != catalog.stamp:
            raise schema_changed()
        return events

    @contextmanager
    def ending(self, *, last: bool) -> Iterator[None]:
        """While an act, or a part of one, is collected."""
        self._ending = last
        try:
            yield
        finally:
            self._ending = None

    def disarm(self, link: Link) -> None:
        """Nothing is captured any more."""
        link.execute(_DISARM)

    def recover(self, link: Link) -> None:
        """A rollback puts everything back."""

    @contextmanager
    def borrowed(self, link: Link) -> Iterator[None]:
        """While rows are given back the settings that values depend on are ours; and after it the app's.

        When it fails the transaction is rolled back to where they were the app's.
        """
        before = dict(zip(SETTINGS, link.execute(_ASK)[0], strict=True))
        differing = [name for name, value in SETTINGS.items() if before[name] != value]
        _set(link, {name: SETTINGS[name] for name in differing})
        yield
        _set(link, {name: before[name] for name in differing})
        deferred = link.execute(_DEFERRED)[0][0]
        link.execute("SET CONSTRAINTS ALL IMMEDIATE")
        if deferred:
            link.execute(f"SET CONSTRAINTS {deferred} DEFERRED")
        self.disarm(link)

    def alone(self, link: Link, group: str) -> None:
        """Waits until nobody else takes back what is of the group."""
        link.execute(_ALONE, (group,))

    def forget(self) -> None:
        """The schema is looked at anew the next time."""
        self._place.catalog = self._place.installed = None


class _Through:
    """A link to another."""

    def __init__(self, link: Link) -> None:
        self._link = link

    @property
    def rowcount(self) -> int:
        return self._link.rowcount

    def execute(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._link.execute(sql, params)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        return self._link.executemany(sql, rows)


class _Watched(_Through):
    """A link that tells whether anything was made."""

    made = False

    def execute(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        self.made = self.made or "pg_advisory_xact_lock" in sql
        return super().execute(sql, params)


class _Asking(_Through):
    """A link that asks, along with what was captured, for the newest table; and disarms the `last` time."""

    newest = ""

    def __init__(self, link: Link, *, last: bool) -> None:
        super().__init__(link)
        self._sql, self._width = (_COLLECT_LAST, 2) if last else (_COLLECT, 1)

    def execute(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if sql != triggers.COLLECT:
            return super().execute(sql, params)
        row = super().execute(self._sql)[0]
        self.newest = row[-self._width]
        return [row[: -self._width]]


def _set(link: Link, values: dict[str, str]) -> None:
    if values:
        sets = ", ".join("pg_catalog.set_config(%s, %s, true)" for _ in values)
        link.execute(f"SELECT {sets}", [part for pair in values.items() for part in pair])
