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
from typing import Any

from takeback.errors import RefusedError
from takeback_acts.rows.changes import Event
from takeback_acts.rows.dialect import Link
from takeback_acts.rows.sqlite.introspection import SqliteTable
from takeback_acts.rows.sqlite.link import SqliteLink, undecodable
from takeback_acts.rows.sqlite.statements import collate, quoted
from takeback_acts.rows.tables import Catalog, Image, Key, Table, identical

_SEEN = "takeback_seen"
_MAYBE = "takeback_maybe"
_INSERTED, _DELETED, _UPDATED = 1, 2, 3


class Capture:
    """The triggers of one catalog: their text, made once."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._tables = [table for table in catalog.tables.values() if isinstance(table, SqliteTable)]
        self._careful = any(table.triggers for table in self._tables)
        self._watched = catalog.watched
        token = repr(
            [self._watched, *((t.name, t.fingerprint, t.indexes, self._careful) for t in self._tables)]
        )
        self._armed = f"takeback_armed_{hashlib.sha256(token.encode()).hexdigest()[:24]}"
        self._look = f"SELECT 1 FROM temp.sqlite_schema WHERE name = '{self._armed}'"
        self._reads = [_select(number, table) for number, table in enumerate(self._tables)]

    def arm(self, link: Link) -> None:
        """Makes the triggers unless this connection has them, and forgets what they saw so far."""
        if not link.execute(self._look):
            self._make(link)
        link.execute(f"DELETE FROM temp.{_SEEN}")
        if self._careful:
            link.execute(f"DELETE FROM temp.{_MAYBE}")

    def count(self, link: Link) -> int:
        """How many changes the triggers saw."""
        found: int = link.execute(f"SELECT count(*) FROM temp.{_SEEN}")[0][0]
        return found

    def collect(self, link: Link) -> list[Event]:
        """What the triggers saw, in order; it is forgotten."""
        numbers = [row[0] for row in link.execute(f"SELECT DISTINCT t FROM temp.{_SEEN}")]
        if not numbers:
            return []
        if len(numbers) == 1:
            events = [event for _, event in self._events(link, numbers[0])]
        else:
            several = [pair for number in numbers for pair in self._events(link, number)]
            several.sort(key=lambda pair: pair[0])
            events = [event for _, event in several]
        link.execute(f"DELETE FROM temp.{_SEEN}")
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
            if kind == _UPDATED:
                yield row[0], Event(name, row[2:middle], row[middle:])
            elif kind == _INSERTED:
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
        kind = cursor.execute(f"SELECT typeof(v{place}) FROM temp.{_SEEN} WHERE seq = ?", (seq,)).fetchone()[
            0
        ]
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
        link.execute(f"CREATE TEMP TABLE {_SEEN} (seq INTEGER PRIMARY KEY, t, w{both})")
        if self._careful:
            one = "".join(f", v{place}" for place in range(width))
            link.execute(f"CREATE TEMP TABLE {_MAYBE} (t{one})")
        for number, table in enumerate(self._tables):
            for text in _triggers(number, table, self._careful):
                link.execute(text)
        for number, name in enumerate(self._watched, 1):
            for verb in ("INSERT", "DELETE", "UPDATE"):
                link.execute(
                    f"CREATE TEMP TRIGGER takeback_w{number}_{verb} AFTER {verb} ON main.{quoted(name)}"
                    f" BEGIN INSERT INTO {_SEEN} (t, w) VALUES ({-number}, 0); END"
                )
        link.execute(f"PRAGMA recursive_triggers = {'OFF' if self._careful else 'ON'}")
        link.execute(f'CREATE TEMP TABLE "{self._armed}" (x)')


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _select(number: int, table: SqliteTable) -> str:
    values = "".join(f", v{place}" for place in range(2 * len(table.columns)))
    return f"SELECT seq, w{values} FROM temp.{_SEEN} WHERE t = {number} ORDER BY seq"


def _triggers(number: int, table: SqliteTable, careful: bool) -> Iterator[str]:
    width = len(table.columns)
    old = ", ".join(f"OLD.{quoted(name)}" for name in table.names)
    new = ", ".join(f"NEW.{quoted(name)}" for name in table.names)
    first = ", ".join(f"v{place}" for place in range(width))
    second = ", ".join(f"v{place}" for place in range(width, 2 * width))
    forget, note = _care(number, table, careful)
    found = _found(number, table, careful, first)
    insert = f"INSERT INTO {_SEEN} (t, w, {second}) VALUES ({number}, {_INSERTED}, {new});"
    delete = f"INSERT INTO {_SEEN} (t, w, {first}) VALUES ({number}, {_DELETED}, {old});"
    update = f"INSERT INTO {_SEEN} (t, w, {first}, {second}) VALUES ({number}, {_UPDATED}, {old}, {new});"
    yield _trigger(number, "i", "AFTER INSERT", table, found + insert)
    yield _trigger(number, "d", "AFTER DELETE", table, forget + delete)
    yield _trigger(number, "u", "AFTER UPDATE", table, found + forget + update)
    if careful:
        yield _trigger(number, "bi", "BEFORE INSERT", table, note(""))
        yield _trigger(number, "bu", "BEFORE UPDATE", table, note(f" AND NOT ({_key_is(table, 'OLD')})"))


def _trigger(number: int, suffix: str, when: str, table: SqliteTable, body: str) -> str:
    name = f"takeback_{number}_{suffix}"
    return f"CREATE TEMP TRIGGER {name} {when} ON main.{quoted(table.name)} BEGIN {body} END"


def _care(number: int, table: SqliteTable, careful: bool) -> tuple[str, Any]:
    """What forgets a noted row that a statement of its own changed, and what notes those that may be
    replaced."""
    if not careful:
        return "", None
    named = " AND ".join(
        f"v{table.index(name)} = OLD.{quoted(name)}{collate(table, name)}" for name in table.key
    )
    forget = f"DELETE FROM {_MAYBE} WHERE t = {number} AND {named};"
    ways = [_key_is(table, "NEW")]
    ways += [
        " AND ".join(
            f"{quoted(name)} = NEW.{quoted(name)} COLLATE {quoted(collation)}"
            for name, collation in zip(index.columns, index.collations, strict=True)
        )
        for index in table.indexes
        if index.columns and not index.of_key
    ]
    columns = ", ".join(quoted(name) for name in table.names)
    values = ", ".join(f"v{place}" for place in range(len(table.names)))

    def note(besides: str) -> str:
        clear = f"DELETE FROM {_MAYBE} WHERE t = {number};"
        return clear + "".join(
            f"INSERT INTO {_MAYBE} (t, {values}) SELECT {number}, {columns} FROM main.{quoted(table.name)}"
            f" WHERE ({way}){besides};"
            for way in ways
        )

    return forget, note


def _found(number: int, table: SqliteTable, careful: bool, values: str) -> str:
    """What tells the noted rows that are gone, or whose key the new row has."""
    if not careful:
        return ""
    here = " AND ".join(f"r.{quoted(name)} = m.v{table.index(name)}" for name in table.key)
    same = " AND ".join(
        f"m.v{table.index(name)} = NEW.{quoted(name)}{collate(table, name)}" for name in table.key
    )
    return (
        f"INSERT INTO {_SEEN} (t, w, {values}) SELECT DISTINCT {number}, {_DELETED}, {values} FROM {_MAYBE} m"
        f" WHERE m.t = {number} AND (({same}) OR NOT EXISTS"
        f" (SELECT 1 FROM main.{quoted(table.name)} r WHERE {here}));"
        f"DELETE FROM {_MAYBE} WHERE t = {number};"
    )


def _key_is(table: SqliteTable, side: str) -> str:
    return " AND ".join(f"{quoted(name)} = {side}.{quoted(name)}{collate(table, name)}" for name in table.key)


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
