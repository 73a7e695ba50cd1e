"""Capture: temporary triggers of our own connection, which write each row that changes to a temporary table.

What they wrote is rolled back with the statement that caused it, and nobody else sees them. SQLite fires no
triggers for rows that a REPLACE takes away, unless triggers may be recursive. Where the person has no
triggers that changes nothing else, so they may. Where there are some, it would change what theirs do: then
the rows a statement might replace are noted before it, and looked for after it.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping

from takeback.errors import RefusedError
from takeback_acts.rows.changes import Event
from takeback_acts.rows.dialect import Link
from takeback_acts.rows.sqlite import triggers
from takeback_acts.rows.sqlite.introspection import SqliteCatalog, SqliteTable
from takeback_acts.rows.sqlite.link import SqliteLink, undecodable
from takeback_acts.rows.sqlite.statements import quoted
from takeback_acts.rows.tables import Catalog, Image, Key, Table, identical


class Capture:
    """The triggers of one catalog: their text, made once."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._tables = [table for table in catalog.tables.values() if isinstance(table, SqliteTable)]
        self._careful = isinstance(catalog, SqliteCatalog) and catalog.triggered
        self._watched = catalog.watched
        shapes = [(table.name, table.fingerprint, table.indexes) for table in self._tables]
        token = repr([catalog.stamp, self._watched, shapes])
        # By its name it tells that this connection has the triggers of this catalog.
        self._seen = f"takeback_seen_{hashlib.sha256(token.encode()).hexdigest()[:24]}"
        self._range = f"SELECT min(t), max(t) FROM temp.{self._seen}"
        self._clear = f"DELETE FROM temp.{self._seen}"
        self._reads = [
            triggers.select(self._seen, number, table) for number, table in enumerate(self._tables)
        ]

    def arm(self, link: Link) -> None:
        """Makes the triggers unless this connection has them, and forgets what they saw so far."""
        try:
            link.execute(self._clear)
        except sqlite3.OperationalError:
            self._make(link)
        if self._careful:
            link.execute(f"DELETE FROM temp.{triggers.MAYBE}")

    def count(self, link: Link) -> int:
        """How many changes the triggers saw."""
        found: int = link.execute(f"SELECT count(*) FROM temp.{self._seen}")[0][0]
        return found

    def collect(self, link: Link) -> list[Event]:
        """What the triggers saw, in order; it is forgotten."""
        ((least, most),) = link.execute(self._range)
        if least is None:
            return []
        numbers = [least]
        if least != most:
            numbers = [row[0] for row in link.execute(f"SELECT DISTINCT t FROM temp.{self._seen}")]
        if len(numbers) == 1:
            events = [event for _, event in self._events(link, numbers[0])]
        else:
            several = [pair for number in numbers for pair in self._events(link, number)]
            several.sort(key=lambda pair: pair[0])
            events = [event for _, event in several]
        link.execute(self._clear)
        return _straight(events, self.catalog.tables) if self._careful and len(events) > 1 else events

    def _events(self, link: Link, number: int) -> Iterator[tuple[int, Event]]:
        if number < 0:
            yield number, Event(self._watched[-number - 1], None, None)
            return
        table = self._tables[number]
        name, width = table.name, len(table.columns)
        middle = 2 + width
        try:
            rows = link.execute(self._reads[number])
        except RefusedError:
            raise self._unreadable(link, number) from None
        for row in rows:
            kind = row[1]
            if kind == triggers.UPDATED:
                yield row[0], Event(name, row[2:middle], row[middle:])
            elif kind == triggers.INSERTED:
                yield row[0], Event(name, None, row[middle:])
            else:
                yield row[0], Event(name, row[2:middle], None)

    def _unreadable(self, link: Link, number: int) -> RefusedError:
        table = self._tables[number]
        assert isinstance(link, SqliteLink)
        cursor = link.connection.cursor()
        before, link.connection.text_factory = link.connection.text_factory, bytes
        try:
            for row in cursor.execute(self._reads[number]).fetchall():
                for place, value in enumerate(row[2:]):
                    if isinstance(value, bytes) and not _is_text(value):
                        column = table.columns[place % len(table.columns)]
                        if self._holds_text(cursor, number, place, row[0]):
                            return undecodable(f"{table.name}.{column.name}")
        finally:
            link.connection.text_factory = before
        return undecodable(table.name)

    def _holds_text(self, cursor: sqlite3.Cursor, number: int, place: int, seq: int) -> bool:
        kind = cursor.execute(
            f"SELECT typeof(v{place}) FROM temp.{self._seen} WHERE seq = ?", (seq,)
        ).fetchone()[0]
        return bool(kind == b"text")

    def _make(self, link: Link) -> None:
        for (name,) in link.execute(
            "SELECT name FROM temp.sqlite_schema WHERE type = 'trigger' AND name GLOB 'takeback_*'"
        ):
            link.execute(f'DROP TRIGGER temp."{name}"')
        for (name,) in link.execute(
            "SELECT name FROM temp.sqlite_schema WHERE type = 'table' AND name GLOB 'takeback_*'"
        ):
            link.execute(f'DROP TABLE temp."{name}"')
        width = max((len(table.columns) for table in self._tables), default=0)
        both = "".join(f", v{place}" for place in range(2 * width))
        link.execute(f"CREATE TEMP TABLE {self._seen} (seq INTEGER PRIMARY KEY, t, w{both})")
        if self._careful:
            one = "".join(f", v{place}" for place in range(width))
            link.execute(f"CREATE TEMP TABLE {triggers.MAYBE} (t{one})")
        for number, table in enumerate(self._tables):
            for text in triggers.of(self._seen, number, table, self._careful):
                link.execute(text)
        for number, name in enumerate(self._watched, 1):
            for verb in ("INSERT", "DELETE", "UPDATE"):
                link.execute(
                    f"CREATE TEMP TRIGGER takeback_w{number}_{verb} AFTER {verb} ON main.{quoted(name)}"
                    f" BEGIN INSERT INTO {self._seen} (t, w) VALUES ({-number}, 0); END"
                )
        link.execute(f"PRAGMA recursive_triggers = {'OFF' if self._careful else 'ON'}")


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _straight(events: list[Event], tables: Mapping[str, Table]) -> list[Event]:
    """Events with what each row really was before it.

    A BEFORE trigger that updates the very row leaves the statement's own OLD as it was before the trigger.
    """
    now: dict[tuple[str, Key], tuple[Image | None, list[Image]]] = {}
    made = []
    for event in events:
        name, before, after = event
        if before is not None:
            table = tables[name]
            last, earlier = now.get((name, table.identify(table.key_of(before))), (None, []))
            if (
                last is not None
                and not identical(last, before)
                and any(identical(b, before) for b in earlier)
            ):
                event = Event(name, last, after)
            earlier.append(before)
            now[name, table.identify(table.key_of(before))] = (None, earlier)
            if after is not None:
                now[name, table.identify(table.key_of(after))] = (after, earlier)
        made.append(event)
    return made
