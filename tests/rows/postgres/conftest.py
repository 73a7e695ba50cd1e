"""A PostgreSQL database with our link and its dialect, and a stranger's connection beside it."""

from __future__ import annotations

import pytest

from takeback_acts.rows.postgres.dialect import PostgresDialect
from takeback_acts.rows.postgres.link import open_link


class Here:
    """One database: `link` is ours, `stranger` is psycopg's own connection of the same role."""

    def __init__(self, server):
        self.server = server
        self.name = server.fresh()
        self.url = server.url(self.name)
        self.dialect = PostgresDialect()
        self.link = open_link(self.url)
        self.stranger = server.connect(self.name, role="app")

    def sql(self, text):
        """Statements by the stranger's hand."""
        self.stranger.execute(text)

    def install(self):
        """The catalog, with everything installed."""
        catalog = self.dialect.catalog(self.link)
        self.dialect.begin(self.link)
        self.dialect.install(self.link, catalog)
        self.dialect.commit(self.link)
        return catalog

    def capture(self, *statements, catalog=None):
        """What statements of ours change, rolled back."""
        catalog = catalog or self.install()
        self.dialect.begin(self.link)
        try:
            self.dialect.arm(self.link, catalog, "act")
            for each in statements:
                self.link.execute(each)
            return self.dialect.collect(self.link, catalog)
        finally:
            self.dialect.rollback(self.link)

    def close(self):
        self.link.close()
        self.stranger.close()
        self.server.drop(self.name)


@pytest.fixture
def here(postgres):
    made = Here(postgres)
    yield made
    made.close()
