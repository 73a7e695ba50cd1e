"""Shapes: what the tables looked like when a change was journaled, and how its rows fit the tables of
today."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from takeback_acts.rows.tables import Catalog, Image, Key, Table, Value, same


class Writer:
    """Tells the shapes of tables as text, the same for the same tables."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._texts: dict[frozenset[str], str] = {}

    def text(self, names: Iterable[str]) -> str:
        """JSON: {table: {"f": fingerprint, "c": columns, "t": their types, "g": those computed, "k": the
        key}}."""
        key = frozenset(names)
        text = self._texts.get(key)
        if text is None:
            shapes = {name: _shape(self._catalog.tables[name]) for name in sorted(key)}
            text = self._texts[key] = json.dumps(shapes, ensure_ascii=False, separators=(",", ":"))
        return text


def _shape(table: Table) -> dict[str, Any]:
    return {
        "f": table.fingerprint,
        "c": list(table.names),
        "t": [column.type for column in table.columns],
        "g": [column.name for column in table.columns if column.generated],
        "k": list(table.key),
    }


class Fit:
    """How images of one table as it was become images of it as it is.

    `table` is None when there is none of that name. `why` says in words what does not allow it at all. `lost`
    are columns, with their places then, that are no more or have become another type.
    """

    def __init__(self, name: str, table: Table | None, shape: dict[str, Any]) -> None:
        self.name = name
        self.table = table
        self.why = ""
        self.lost: list[tuple[str, int]] = []
        self.straight = table is not None and table.fingerprint == shape["f"]
        self._places: list[int | None] = []
        self._new: list[str] = []
        self._defaults: tuple[Value, ...] | None = None
        self._key = [shape["c"].index(name) for name in shape["k"]]
        if table is None:
            self.why = "the table is no more"
        elif not self.straight:
            self._compare(table, shape)

    def _compare(self, table: Table, shape: dict[str, Any]) -> None:
        then = {
            name: (place, kind) for place, (name, kind) in enumerate(zip(shape["c"], shape["t"], strict=True))
        }
        for column in table.columns:
            place, kind = then.get(column.name, (None, ""))
            if place is not None and kind.lower() != column.type.lower():
                place = None
            self._places.append(place)
            if place is None:
                self._new.append(column.name)
        computed = set(shape["g"])
        kept = {place for place in self._places if place is not None}
        self.lost = [
            (name, place) for name, (place, _) in then.items() if place not in kept and name not in computed
        ]
        if list(table.key) != shape["k"]:
            self.why = "its key is another now"
        elif any(name in table.key for name, _ in self.lost):
            self.why = "the type of its key is another now"

    def adapt(
        self, image: Image | None, defaults: Callable[[Table, list[str]], tuple[Value, ...]]
    ) -> Image | None:
        """The image in the columns of today; a column that is new has what it has when nobody says
        anything."""
        if image is None or self.straight:
            return image
        assert self.table is not None
        if self._defaults is None:
            self._defaults = defaults(self.table, self._new)
        fresh = iter(self._defaults)
        return tuple(next(fresh) if place is None else image[place] for place in self._places)

    def old_key(self, image: Image | None) -> Key:
        """The key of an image, by the columns that were the key then."""
        return tuple(image[place] for place in self._key) if image else ()

    def missed(self, before: Image | None, after: Image | None) -> list[str]:
        """Columns that the change needs, and the table has no more."""
        if before is None or after is None:
            image = before or after or ()
            return [name for name, place in self.lost if image[place] is not None]
        return [name for name, place in self.lost if not same(before[place], after[place])]


class Reader:
    """Gives the fits of journaled changes to one catalog; each text of shapes is read once."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._read: dict[str, dict[str, Fit]] = {}

    def fits(self, text: str) -> dict[str, Fit]:
        """By table, how images of the shapes in this text fit."""
        found = self._read.get(text)
        if found is None:
            found = self._read[text] = {
                name: Fit(name, self._catalog.tables.get(name), shape)
                for name, shape in json.loads(text).items()
            }
        return found
