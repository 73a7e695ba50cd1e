"""Ledger: the engine's journal over a connection that an app has open, an act in two halves."""

from __future__ import annotations

from collections.abc import Sequence

from takeback_acts.rows.changes import Change
from takeback_acts.rows.dialect import Link
from takeback_acts.rows.entries import Entry, Stored
from takeback_acts.rows.journal import Ledger
from takeback_acts.rows.library.inserts import inserts
from takeback_acts.rows.library.postgres import AppPostgres
from takeback_acts.rows.library.sqlite import AppSqlite
from takeback_acts.rows.rules import Rules
from takeback_acts.rows.tables import Catalog

AppDialect = AppSqlite | AppPostgres


class AppLedger(Ledger):
    """The journal of one database through one connection of an app's pool."""

    dialect: AppDialect

    def __init__(self, dialect: AppDialect, link: Link, rules: Rules) -> None:
        super().__init__(dialect, dialect.known(link), rules)

    def arm(self, link: Link, id: str) -> None:
        """From now on in this transaction changes are captured."""
        catalog = self.dialect.begin_act(link, self.catalog, id)
        if catalog is not self.catalog:
            self._known(catalog)

    def journal_captured(self, link: Link, entry: Entry, *, last: bool) -> list[Change]:
        """Writes down what was captured since, if anything was; the `last` time nothing is captured any more.

        Raises ConflictError `journal.schema`.
        """
        with self.dialect.ending(last=last):
            changes = self._captured(link, self.catalog)
        if changes:
            self._add(link, entry, "act", changes, ())
        return changes

    def _captured(self, link: Link, catalog: Catalog) -> list[Change]:
        events = self.dialect.collect(link, catalog)
        if inserts(events, catalog) and events[0].table not in self.rules.outside:
            return [Change(*event) for event in events]
        self.dialect.handed = events
        return super()._captured(link, catalog)

    def close(self, link: Link, stored: Sequence[Stored], id: str) -> None:
        """Entries of which parts were left alone are taken back all the same: nobody comes for the rest."""
        self._mark(link, stored, id)

    def forget(self) -> None:
        """What was known of the schema's triggers is no longer certain."""
        self.dialect.forget()
