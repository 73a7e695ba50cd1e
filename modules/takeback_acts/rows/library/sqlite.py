"""SQLite on an app's connection: what capture and undo set there is put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from takeback_acts.rows.changes import Event
from takeback_acts.rows.dialect import Link
from takeback_acts.rows.library.covering import Covering
from takeback_acts.rows.library.failures import schema_changed
from takeback_acts.rows.library.place import Place
from takeback_acts.rows.sqlite import introspection
from takeback_acts.rows.sqlite.dialect import SqliteDialect
from takeback_acts.rows.sqlite.introspection import SqliteCatalog
from takeback_acts.rows.sqlite.link import SqliteLink
from takeback_acts.rows.tables import Catalog


class AppSqlite(SqliteDialect):
    """The dialect of one connection."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self._place = place
        self._recursive: int | None = None
        self._covering: Covering | None = None
        self._ending: bool | None = None
        self.handed: list[Event] | None = None

    # -- the schema ----------------------------------------------------------------------------------------

    def known(self, link: Link) -> Catalog:
        """The tables, from the last time if somebody looked already."""
        if self._place.catalog is None:
            self._place.catalog = self.catalog(link)
        return self._place.catalog

    def refresh(self, link: Link, catalog: Catalog) -> Catalog:
        if introspection.stamp(link) != catalog.stamp:
            catalog = self._place.catalog = introspection.catalog(link)
        return catalog

    def is_home(self, link: Link) -> bool:
        """Whether the journal's table is there."""
        found = "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'takeback_journal'"
        return bool(link.execute(found))

    def forget(self) -> None:
        """The schema is looked at anew the next time."""
        self._place.catalog = None

    # -- transactions --------------------------------------------------------------------------------------

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

    def alone(self, link: Link, group: str) -> None:
        """Who writes is alone already."""

    # -- capture -------------------------------------------------------------------------------------------

    @property
    def covering(self) -> Covering | None:
        """What captures while an act is open."""
        return self._covering

    def begin_act(self, link: Link, catalog: Catalog, act_id: str) -> Catalog:
        """From now on what the app writes is captured, table by table as it comes to them; the catalog."""
        catalog = self.refresh(link, catalog)
        self._covered(link, catalog).begin(link)
        return catalog

    def arm(self, link: Link, catalog: Catalog, act_id: str) -> None:
        self._covered(link, catalog).arm(link)

    def _covered(self, link: Link, catalog: Catalog) -> Covering:
        """SQLite tells triggers of rows that a REPLACE takes away only where triggers may be recursive. An
        app's own, if it has any, must not become so."""
        assert isinstance(catalog, SqliteCatalog)
        recursive = self._recursive is None and bool(link.execute("PRAGMA recursive_triggers")[0][0])
        if not recursive and not catalog.triggered:
            self._recursive = 0
            link.execute("PRAGMA recursive_triggers = ON")
        covering = self._covering
        if covering is None or covering.catalog is not catalog or covering.recursive != recursive:
            covering = self._covering = self._capture = Covering(catalog, recursive=recursive)
        return covering

    def collect(self, link: Link, catalog: Catalog) -> list[Event]:
        if self.handed is not None:
            handed, self.handed = self.handed, None
            return handed
        if self._ending is not None and introspection.stamp(link) != catalog.stamp:
            raise schema_changed()
        events = super().collect(link, catalog)
        if self._ending:
            self.disarm(link)
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
        """Takes all that captures away from the connection."""
        if self._covering is not None:
            self._covering.remove(link)
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
