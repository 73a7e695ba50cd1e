"""The dialect of SQLite, through Python's own sqlite3."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, TypeVar

from takeback.errors import ConflictError, RefusedError
from takeback_acts.rows.changes import Change, Event
from takeback_acts.rows.dialect import Link, Violation
from takeback_acts.rows.sqlite import introspection, references, statements, violations
from takeback_acts.rows.sqlite.capture import Capture
from takeback_acts.rows.sqlite.introspection import SqliteTable
from takeback_acts.rows.sqlite.link import SqliteLink, undecodable
from takeback_acts.rows.tables import Catalog, Column, Image, Key, Table, Value

_AT_ONCE = 500
_MANY = 500
_SPARE = 1 << 61
Row = TypeVar("Row", bound="tuple[Value, ...]")

_JOURNAL = """
CREATE TABLE IF NOT EXISTS main.takeback_journal (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    grp TEXT NOT NULL,
    point TEXT NOT NULL,
    tool TEXT NOT NULL,
    shapes TEXT NOT NULL,
    changes TEXT NOT NULL,
    undoes TEXT,
    undone_in TEXT,
    note TEXT
)
"""
_BY_GROUP = "CREATE INDEX IF NOT EXISTS main.takeback_journal_grp ON takeback_journal (grp, seq)"


class SqliteDialect:
    """One for any number of connections to one database."""

    name = "sqlite"
    mark = "?"

    def __init__(self) -> None:
        self._capture: Capture | None = None

    def quote(self, name: str) -> str:
        return statements.quoted(name)

    # -- the schema --------------------------------------------------------------------------------------

    def catalog(self, link: Link) -> Catalog:
        return introspection.catalog(link)

    def refresh(self, link: Link, catalog: Catalog) -> Catalog:
        return catalog if introspection.stamp(link) == catalog.stamp else introspection.catalog(link)

    def install(self, link: Link, catalog: Catalog) -> None:
        link.execute(_JOURNAL)
        link.execute(_BY_GROUP)

    def remove(self, link: Link) -> None:
        link.execute("DROP TABLE IF EXISTS main.takeback_journal")

    # -- transactions ------------------------------------------------------------------------------------

    def begin(self, link: Link) -> None:
        assert isinstance(link, SqliteLink)
        if not link.ready:
            link.execute("PRAGMA foreign_keys = ON")
            link.execute("PRAGMA temp_store = MEMORY")
            link.execute("PRAGMA cache_size = -32768")
            link.ready = True
        link.execute("BEGIN IMMEDIATE")

    def commit(self, link: Link) -> None:
        link.execute("COMMIT")

    def rollback(self, link: Link) -> None:
        assert isinstance(link, SqliteLink)
        if link.connection.in_transaction:
            link.execute("ROLLBACK")

    def savepoint(self, link: Link, name: str) -> None:
        link.execute(f"SAVEPOINT {name}")

    def release(self, link: Link, name: str) -> None:
        link.execute(f"RELEASE {name}")

    def rollback_to(self, link: Link, name: str) -> None:
        """ConflictError("rows.rolled_back") when a trigger has rolled back more than that."""
        assert isinstance(link, SqliteLink)
        if not link.connection.in_transaction:
            raise ConflictError(
                "rows.rolled_back",
                "A trigger of the database rolled back the whole transaction, so nothing was done.",
                "Look at its triggers that RAISE(ROLLBACK).",
            )
        link.execute(f"ROLLBACK TO {name}")
        link.execute(f"RELEASE {name}")

    def spare(self, table: Table, column: str, number: int) -> Value:
        affinity = table.columns[table.index(column)].type.upper()
        if "INT" in affinity:
            return _SPARE + number
        if affinity in ("REAL", "DOUBLE", "FLOAT"):
            return float(_SPARE + number * 4096)
        if affinity == "BLOB":
            return uuid.uuid4().bytes
        return f"takeback-{uuid.uuid4()}"

    def defer(self, link: Link) -> None:
        link.execute("PRAGMA defer_foreign_keys = ON")

    def settle(self, link: Link, catalog: Catalog, changes: Sequence[Change]) -> Violation | None:
        return references.broken(link, catalog, changes)

    def violation(self, error: BaseException) -> Violation | None:
        return violations.violation(error)

    # -- capture -----------------------------------------------------------------------------------------

    def arm(self, link: Link, catalog: Catalog, act_id: str) -> None:
        self._capturing(catalog).arm(link)

    def collect(self, link: Link, catalog: Catalog) -> list[Event]:
        return self._capturing(catalog).collect(link)

    def captured(self, link: Link, catalog: Catalog) -> int | None:
        return self._capturing(catalog).count(link)

    def _capturing(self, catalog: Catalog) -> Capture:
        capture = self._capture
        if capture is None or capture.catalog is not catalog:
            capture = self._capture = Capture(catalog)
        return capture

    # -- rows --------------------------------------------------------------------------------------------

    def read(self, link: Link, table: Table, keys: Iterable[Key], *, lock: bool = False) -> dict[Key, Image]:
        wanted = list(keys)
        if not table.folds:
            rows = list(self._rows(link, _own(table), _in_order(wanted)))
            found = dict(zip(table.keys_of(rows), rows, strict=True))
            if found.keys() <= set(wanted):
                return found
        asked = {table.identify(key): key for key in wanted}
        found = {}
        strays = 0
        for row in self._rows(link, _own(table), list(asked.values())):
            key = asked.get(table.identify(table.key_of(row)))
            if key is None:
                strays += 1
            else:
                found[key] = row
        if strays:
            self._read_singly(link, _own(table), asked.values(), found)
        return found

    def _rows(self, link: Link, table: SqliteTable, keys: Sequence[Key]) -> Iterable[Image]:
        for start in range(0, len(keys), _AT_ONCE):
            part = keys[start : start + _AT_ONCE]
            try:
                rows = link.execute(statements.select(table, len(part)), list(chain.from_iterable(part)))
            except RefusedError:
                raise undecodable(f"a row of {table.name}") from None
            yield from rows

    def _read_singly(
        self, link: Link, table: SqliteTable, keys: Iterable[Key], found: dict[Key, Image]
    ) -> None:
        """A key that the database turns into another type, '7' into 7, is not the key of the row it finds."""
        for key in keys:
            if key not in found:
                for row in link.execute(statements.select(table, 1), key):
                    found[key] = row

    def insert(self, link: Link, table: Table, images: Sequence[Image]) -> None:
        if any(column.generated for column in table.columns):
            places = [table.index(column.name) for column in table.writable]
            images = [tuple(image[place] for place in places) for image in images]
        link.executemany(statements.insert(_own(table)), images)

    def update(self, link: Link, table: Table, sets: Sequence[tuple[Key, Mapping[str, Value]]]) -> None:
        alike: dict[tuple[str, ...], list[tuple[Value, ...]]] = {}
        for key, values in sets:
            alike.setdefault(tuple(values), []).append((*values.values(), *key))
        for columns, rows in alike.items():
            ordered: Sequence[tuple[Value, ...]] = rows
            if not _refers_to_itself(table):
                ordered = _in_order(rows, itemgetter(slice(len(columns), None)))
            link.executemany(statements.update(_own(table), columns), ordered)

    def delete(self, link: Link, table: Table, keys: Sequence[Key]) -> None:
        ordered = keys if _refers_to_itself(table) else _in_order(keys)
        link.executemany(statements.delete(_own(table)), ordered)

    def defaults(self, link: Link, table: Table, columns: Sequence[str]) -> tuple[Value, ...]:
        if not columns:
            return ()
        parts = [table.columns[table.index(column)] for column in columns]
        told = ", ".join(f"c{number} {_declared(column)}" for number, column in enumerate(parts))
        link.execute(f"CREATE TEMP TABLE takeback_default ({told})")
        link.execute("INSERT INTO temp.takeback_default DEFAULT VALUES")
        found: tuple[Value, ...] = link.execute("SELECT * FROM temp.takeback_default")[0]
        link.execute("DROP TABLE temp.takeback_default")
        return found


def _refers_to_itself(table: Table) -> bool:
    """Whether rows of the table may depend on one another, so that their order is not ours to choose."""
    return any(key.to == table.name for key in table.foreign_keys)


def _in_order(rows: Sequence[Row], key: Callable[[Row], Any] | None = None) -> Sequence[Row]:
    """Many rows in the order they lie in the file, so that no page is asked for twice."""
    if len(rows) < _MANY:
        return rows
    try:
        return sorted(rows, key=key)
    except TypeError:
        return rows


def _own(table: Table) -> SqliteTable:
    assert isinstance(table, SqliteTable)
    return table


def _declared(column: Column) -> str:
    """A column that is given its default with the affinity it has."""
    default = column.default
    if column.generated or default is None:
        return column.type
    if not default.startswith('"'):
        default = f"({default})"
    return f"{column.type} DEFAULT {default}"
