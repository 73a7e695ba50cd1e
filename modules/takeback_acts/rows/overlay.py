"""Overlay: rows as they would be after what is judged so far, over the rows as the database holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from takeback_acts.rows.changes import Change, joined
from takeback_acts.rows.dialect import Dialect, Link
from takeback_acts.rows.rules import Rules
from takeback_acts.rows.tables import Image, Key, Table, same


class Sheet:
    """The rows of one table by the one form of their keys.

    `base` is what the database holds of every key that was asked for, `state` what differs from it. A row
    whose key is given back stands under its new key; `moved` has what it is in the database then, or None
    where the row under that key in the database has left it.
    """

    def __init__(self, table: Table, rules: Rules) -> None:
        self.table = table
        self.groups = rules.groups.get(table.name, ())
        self.deltas = rules.deltas.get(table.name, frozenset())
        self.derived = rules.derived.get(table.name, frozenset())
        self.promised = [
            place
            for place, column in enumerate(table.columns)
            if not column.generated and column.name not in self.derived
        ]
        self.plain = len(self.promised) == len(table.columns)
        self.silent = frozenset(table.places).difference(self.promised)
        self.base: dict[Key, Image | None] = {}
        self.state: dict[Key, Image | None] = {}
        self.moved: dict[Key, Image | None] = {}
        self.ousted: list[Image] = []

    def now(self, key: Key) -> Image | None:
        """The row as it would be; the key was loaded."""
        if key in self.state:
            return self.state[key]
        return self.base[key]

    def origin(self, key: Key) -> Image | None:
        """What the row under this key is in the database now."""
        return self.moved[key] if key in self.moved else self.base[key]

    def alike(self, one: Image, other: Image) -> bool:
        """Whether two rows are the same in all that is promised of them."""
        return self.table.equal(one, other) or (
            not self.plain and all(same(one[place], other[place]) for place in self.promised)
        )

    def lift(self, key: Key) -> Image | None:
        """Takes the row away from its key, to be put elsewhere; what it is in the database."""
        origin = self.origin(key)
        self.state[key] = None
        self.moved[key] = None
        return origin

    def put(self, key: Key, image: Image, origin: Image | None) -> None:
        """Puts a row under a free key."""
        self.state[key] = image
        self.moved[key] = origin

    def planned(self) -> Iterator[Change]:
        """What makes the database's rows those of the overlay."""
        name = self.table.name
        for gone in self.ousted:
            yield Change(name, gone, None)
        moved, base, equal = self.moved, self.base, self.table.equal
        for key, image in self.state.items():
            origin = moved[key] if key in moved else base[key]
            if image is not origin and (image is None or origin is None or not equal(image, origin)):
                yield Change(name, origin, image)


class Overlay:
    """The sheets of all tables. It is true for as long as nobody else writes: within one transaction."""

    def __init__(self, tables: Mapping[str, Table], rules: Rules) -> None:
        self._tables = tables
        self._rules = rules
        self.sheets: dict[str, Sheet] = {}

    def sheet(self, name: str) -> Sheet:
        """The sheet of a table that there is."""
        sheet = self.sheets.get(name)
        if sheet is None:
            sheet = self.sheets[name] = Sheet(self._tables[name], self._rules)
        return sheet

    def load(self, link: Link, dialect: Dialect, name: str, keys: Iterable[Key]) -> None:
        """Reads the rows of keys, in their one form, that no one asked for yet; they are locked for us."""
        sheet = self.sheet(name)
        base = sheet.base
        wanted: dict[Key, Image | None] = dict.fromkeys(key for key in keys if key not in base)
        if wanted:
            base.update(wanted)
            base.update(dialect.read(link, sheet.table, wanted, lock=True))

    def planned(self) -> list[Change]:
        """What makes the database as the overlay is."""
        changes = [change for sheet in self.sheets.values() for change in sheet.planned()]
        if any(sheet.moved or sheet.ousted for sheet in self.sheets.values()):
            return joined(changes, self._tables)
        return changes

    def settle(self) -> None:
        """The database is now as the overlay is."""
        for sheet in self.sheets.values():
            sheet.base.update(sheet.state)
            sheet.state.clear()
            sheet.moved.clear()
            sheet.ousted.clear()
