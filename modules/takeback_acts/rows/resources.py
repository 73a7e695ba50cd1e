"""Resources: the names of rows and of their columns, and the versions of what is in them.

`rows:DATABASE/TABLE/KEY/COLUMN` is a column of a row, `rows:DATABASE/TABLE/KEY/` the row as a whole. One row
has one name: keys that the database takes for equal are written alike, and those that it tells apart differ.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from takeback.errors import UsageError
from takeback_acts.rows.changes import Change, changed
from takeback_acts.rows.tables import Catalog, Image, Key, Table, Value

ABSENT = "absent"
_INTEGER = re.compile(r"-?[0-9]+")
_TAG = "="

Triple = tuple[str, str, str]
"""A resource with its version before and after."""


class Place(NamedTuple):
    """What a resource names: a table's column in the row of a key, or the row where `column` is empty."""

    database: str
    table: str
    key: tuple[str, ...]
    column: str


def parse(resource: str) -> Place:
    """What a name says; raises UsageError `rows.resource`."""
    scheme, _, rest = resource.partition(":")
    parts = rest.split("/")
    if scheme != "rows" or len(parts) != 4 or not all(parts[:3]):
        raise UsageError(
            "rows.resource", f"{resource:.300} names no row", "Write rows:DATABASE/TABLE/KEY/COLUMN."
        )
    database, table, key, column = parts
    return Place(database, unquote(table), tuple(key.split(",")), unquote(column))


# ---------------------------------------------------------------------- versions


def version_of_row(table: Table, image: Image | None, derived: Collection[str] = ()) -> str:
    """The version of a row as a whole; what the database computes is no part of it."""
    if image is None:
        return ABSENT
    values = {
        column.name: _tagged(value)
        for column, value in zip(table.columns, image, strict=True)
        if not column.generated and column.name not in derived
    }
    return f"row:{_digest(values)}"


def version_of_cell(value: Value) -> str:
    """The version of one column of a row that is there."""
    return f"cell:{_digest(_tagged(value))}"


def _digest(values: object) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _tagged(value: Value) -> object:
    if isinstance(value, bytes):
        return {"x": value.hex()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"f": repr(value)}
    return value


class Names:
    """Writes and reads the names of one database's rows, and tells what changes touch.

    `derived` are columns by table that are no part of a row's version. `deltas` are counters: a number that
    others have brought to what it was before an act still has in it what the act added, so no counter ever
    has the version that the act is said to have found.
    """

    def __init__(
        self,
        engine: str,
        database: str,
        derived: Mapping[str, Collection[str]],
        deltas: Mapping[str, Collection[str]],
    ) -> None:
        self._engine = engine
        self._database = database
        self._derived = derived
        self._deltas = deltas

    def row(self, table: Table, key: Key) -> str:
        """The name of a row as a whole."""
        parts = ",".join(map(self._written, table.identify(key)))
        return f"rows:{self._database}/{quote(table.name, safe='')}/{parts}/"

    def cell(self, table: Table, key: Key, column: str) -> str:
        """The name of one column of a row."""
        return self.row(table, key) + quote(column, safe="")

    def named(self, name: str, table: Table | None, key: Key, column: str) -> str:
        """The name of what is known of a place; of a table where there is no more to say."""
        if table is None or len(key) != len(table.key):
            return f"rows:{self._database}/{quote(name, safe='')}/"
        return self.cell(table, key, column) if column else self.row(table, key)

    def key(self, place: Place) -> Key:
        """The key that a name holds, as the database has it."""
        return tuple(map(self._read, place.key))

    def version(self, table: Table, image: Image | None, column: str) -> str:
        """The version of a row's column, or of the whole of it where that is empty."""
        if image is None or (column and not table.has(column)):
            return ABSENT
        if column:
            return version_of_cell(image[table.index(column)])
        return version_of_row(table, image, self._derived.get(table.name, ()))

    def touched(self, catalog: Catalog, changes: Iterable[Change]) -> list[Triple]:
        """Each resource of these changes, once, with its versions before and after."""
        found: dict[str, tuple[str, str]] = {}
        for change in changes:
            for name, before, after in self._touched(catalog.tables[change.table], change):
                if (seen := found.get(name)) is not None:
                    # Two rows that have changed places: from each key one went, and the other came.
                    before = seen[0] if before == ABSENT else before
                    after = seen[1] if after == ABSENT else after
                found[name] = (before, after)
        return [(name, before, after) for name, (before, after) in found.items()]

    def _touched(self, table: Table, change: Change) -> Iterator[Triple]:
        before, after = change.before, change.after
        old = None if before is None else table.identify(table.key_of(before))
        new = None if after is None else table.identify(table.key_of(after))
        if before is not None and after is not None and old == new and new is not None:
            counters = self._deltas.get(table.name, ())
            for name in changed(table, change):
                place = table.index(name)
                was, becomes = version_of_cell(before[place]), version_of_cell(after[place])
                yield self.cell(table, new, name), f"less:{was}" if name in counters else was, becomes
            return
        if old is not None:
            yield self.row(table, old), self.version(table, before, ""), ABSENT
        if new is not None:
            yield self.row(table, new), ABSENT, self.version(table, after, "")

    def _written(self, value: Value) -> str:
        if isinstance(value, str):
            # On PostgreSQL every value is text, and which kind of value it is the column tells. No text has
            # a colon once it is quoted.
            doubtful = self._engine == "sqlite" and _INTEGER.fullmatch(value) is not None
            tag = _TAG if not value or value.startswith(_TAG) or doubtful else ""
            return tag + quote(value, safe="")
        if isinstance(value, bytes):
            return f"x:{value.hex()}"
        if isinstance(value, float):
            return f"f:{value!r}"
        return "n:" if value is None else str(value)

    def _read(self, part: str) -> Value:
        if part.startswith(_TAG):
            return unquote(part[1:])
        if self._engine == "sqlite":
            if part.startswith("f:"):
                return float(part[2:])
            if part.startswith("x:"):
                return bytes.fromhex(part[2:])
            if _INTEGER.fullmatch(part):
                return int(part)
        return None if part == "n:" else unquote(part)
