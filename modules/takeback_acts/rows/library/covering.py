"""Covering: the triggers that capture, made on an app's connection for the tables that an act writes.

They are there from before the first statement that may write a table until the act ends. Nothing is left to
slow other writes, or to stand in the way of a change of the schema.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable

from takeback_acts.rows.dialect import Link
from takeback_acts.rows.library.coverage import Coverage, rolls_back
from takeback_acts.rows.sqlite import triggers
from takeback_acts.rows.sqlite.capture import Capture
from takeback_acts.rows.sqlite.introspection import SqliteCatalog
from takeback_acts.rows.sqlite.statements import quoted

_OURS = (
    "SELECT type, name FROM temp.sqlite_schema WHERE type IN ('trigger', 'table') AND name GLOB 'takeback_*'"
)


class Covering(Capture):
    """The capture of one connection. `recursive`: its app lets triggers fire for rows that a REPLACE takes
    away, so nothing needs care."""

    def __init__(self, catalog: SqliteCatalog, *, recursive: bool) -> None:
        super().__init__(catalog)
        self.recursive = recursive
        self._careful = self._careful and not recursive
        self._whole = catalog.triggered
        self._numbers = {table.name: number for number, table in enumerate(self._tables)}
        self.coverage = Coverage(catalog)
        self._covered: set[str] = set()
        self._last = ""

    def arm(self, link: Link) -> None:
        """As for what is given back, which is about any table."""
        self.begin(link)
        self.cover(link, self._all())

    def begin(self, link: Link) -> None:
        """Nothing is captured until a table is covered."""
        try:
            self._make_tables(link)
        except sqlite3.OperationalError:
            self.remove(link)
            self._make_tables(link)
        self._covered.clear()
        self._last = ""

    def _all(self) -> Iterable[str]:
        return (*self._numbers, *self._watched)

    def _make_tables(self, link: Link) -> None:
        width = max((len(table.columns) for table in self._tables), default=0)
        both = "".join(f", v{place}" for place in range(2 * width))
        link.execute(f"CREATE TEMP TABLE {self._seen} (seq INTEGER PRIMARY KEY, t, w{both})")
        if self._careful:
            one = "".join(f", v{place}" for place in range(width))
            link.execute(f"CREATE TEMP TABLE {triggers.MAYBE} (t{one})")

    def before(self, statement: str) -> Collection[str]:
        """A statement is about to run: the tables to cover first.

        A rollback to a savepoint may take triggers away with it.
        """
        if statement is self._last:
            return ()
        self._last = statement
        if rolls_back(statement):
            self._covered.clear()
        reached = self.coverage.of(statement)
        if reached and self._whole:
            reached = frozenset(self._all())
        return reached - self._covered

    def cover(self, link: Link, names: Iterable[str]) -> None:
        """From now on changes of these tables are captured."""
        for name in names:
            for text in self._texts(name):
                link.execute(text.replace("CREATE TEMP TRIGGER", "CREATE TEMP TRIGGER IF NOT EXISTS", 1))
            self._covered.add(name)

    def _texts(self, name: str) -> Iterable[str]:
        number = self._numbers.get(name)
        if number is not None:
            return triggers.of(self._seen, number, self._tables[number], self._careful)
        number = self._watched.index(name) + 1
        return [
            f"CREATE TEMP TRIGGER takeback_w{number}_{verb} AFTER {verb} ON main.{quoted(name)}"
            f" BEGIN INSERT INTO {self._seen} (t, w) VALUES ({-number}, 0); END"
            for verb in ("INSERT", "DELETE", "UPDATE")
        ]

    def remove(self, link: Link) -> None:
        """Takes all that captures away from the connection."""
        for kind, name in sorted(link.execute(_OURS), reverse=True):
            link.execute(f'DROP {kind} temp."{name}"')
        self._covered.clear()
