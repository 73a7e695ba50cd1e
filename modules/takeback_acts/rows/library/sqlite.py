"""SQLite on an app's connection: what capture and undo set there is put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from takeback_acts.rows.dialect import Link
from takeback_acts.rows.library.place import Place
from takeback_acts.rows.sqlite import introspection
from takeback_acts.rows.sqlite.dialect import SqliteDialect
from takeback_acts.rows.sqlite.link import SqliteLink
from takeback_acts.rows.tables import Catalog

_OURS = (
    "SELECT type, name FROM temp.sqlite_schema WHERE type IN ('trigger', 'table') AND name GLOB 'takeback_*'"
)


class AppSqlite(SqliteDialect):
    """The dialect of one connection."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self._place = place
        self._recursive: int | None = None

    def known(self, link: Link) -> Catalog:
        """The tables, from the last time if the schema is the same."""
        if self._place.catalog is None:
            self._place.catalog = self.catalog(link)
        return self._place.catalog

    def refresh(self, link: Link, catalog: Catalog) -> Catalog:
        if introspection.stamp(link) != catalog.stamp:
            catalog = self._place.catalog = introspection.catalog(link)
        return catalog

    def glance(self, link: Link, catalog: Catalog) -> Catalog:
        """The catalog as the next act needs it."""
        return self.refresh(link, catalog)

    def is_home(self, link: Link) -> bool:
        """Whether the journal's table is there."""
        found = "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'takeback_journal'"
        return bool(link.execute(found))

    def start(self, link: Link) -> bool:
        """Begins the transaction that an app means to be in already; whether there was none."""
        assert isinstance(link, SqliteLink)
        if link.connection.in_transaction:
            return False
        link.execute("BEGIN IMMEDIATE")
        return True

    def quit(self, link: Link) -> None:
        """Ends a transaction in which nothing was done."""
        link.execute("ROLLBACK")

    def arm(self, link: Link, catalog: Catalog, act_id: str) -> None:
        if self._recursive is None:
            self._recursive = link.execute("PRAGMA recursive_triggers")[0][0]
        super().arm(link, catalog, act_id)

    def disarm(self, link: Link) -> None:
        """Takes all that captures away from the connection."""
        for kind, name in sorted(link.execute(_OURS), reverse=True):
            link.execute(f'DROP {kind} IF EXISTS temp."{name}"')
        self.recover(link)

    def recover(self, link: Link) -> None:
        """Puts back what no rollback does."""
        if self._recursive is not None:
            link.execute(f"PRAGMA recursive_triggers = {self._recursive}")
            self._recursive = None

    @contextmanager
    def borrowed(self, link: Link) -> Iterator[None]:
        """While rows are given back; everything is as it was then."""
        deferred = link.execute("PRAGMA defer_foreign_keys")[0][0]
        try:
            yield
            self.disarm(link)
        finally:
            link.execute(f"PRAGMA defer_foreign_keys = {deferred}")
            self.recover(link)

    def alone(self, link: Link, group: str) -> None:
        """Who writes is alone already."""

    def forget(self) -> None:
        """The schema is looked at anew the next time."""
        self._place.catalog = None
