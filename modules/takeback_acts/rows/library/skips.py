"""Skips: what a rewind leaves alone because something stands against it, in wider circles until nothing
does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from takeback_acts.rows import codec
from takeback_acts.rows.changes import Change
from takeback_acts.rows.effects import Effect
from takeback_acts.rows.entries import Stored
from takeback_acts.rows.judging import Part
from takeback_acts.rows.tables import Catalog, ForeignKey, Key


@dataclass
class Skips:
    """First the column or row that a conflict is about, in all acts; then all of that row; then its table.

    As a container it has every part that is to be given back. A constraint whose row nobody can tell keeps
    all rows of the two tables it is between from coming and going.
    """

    catalog: Catalog
    parts: set[Part] = field(default_factory=set)
    rows: set[tuple[str, Key]] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)
    still: set[str] = field(default_factory=set)

    def __contains__(self, part: object) -> bool:
        assert isinstance(part, tuple)
        table, key, column = part
        return (
            part not in self.parts
            and not (column == "" and table in self.still)
            and ((table, key) not in self.rows)
        )

    def widen(self, effects: Iterable[Effect]) -> bool:
        """Takes conflicts in; whether that was anything new."""
        before = self._size()
        parts, rows, still = frozenset(self.parts), frozenset(self.rows), frozenset(self.still)
        for effect in effects:
            table, key = effect.table, effect.key
            if not key:
                self._take_in_constraint(effect, still)
            elif table not in self.catalog.tables or (table, key) in rows:
                self.tables.add(table)
            elif effect.action == "gone" or (table, key, effect.column) in parts:
                self.rows.add((table, key))
            else:
                self.parts.add((table, key, effect.column))
        return self._size() > before

    def _size(self) -> int:
        return len(self.parts) + len(self.rows) + len(self.tables) + len(self.still)

    def _take_in_constraint(self, effect: Effect, still: frozenset[str]) -> None:
        if effect.table:
            named = self._foreign_key(effect)
            tables = {effect.table} if named is None else {effect.table, named.to}
            if tables <= still:
                self.tables |= tables
            self.still |= tables

    def _foreign_key(self, effect: Effect) -> ForeignKey | None:
        table = self.catalog.tables.get(effect.table)
        found = table.foreign_keys if table is not None else ()
        return next((key for key in found if key.name == effect.constraint), None)

    def without(self, stored: Sequence[Stored]) -> list[Stored]:
        """The entries without the rows and tables that are left alone altogether."""
        if not self.rows and not self.tables:
            return list(stored)
        return [self._thinned(each) for each in stored]

    def _thinned(self, each: Stored) -> Stored:
        lines = json.loads(each.text)
        decoded = codec.decode(each.text)
        kept = [line for line, known in zip(lines, decoded, strict=True) if not self._left(known)]
        if len(kept) == len(lines):
            return each
        return each._replace(text=json.dumps(kept, ensure_ascii=False, separators=(",", ":")))

    def _left(self, change: Change) -> bool:
        name = change.table
        table = self.catalog.tables.get(name)
        if name in self.tables or table is None:
            return name in self.tables
        whole = (image for image in change[1:] if image is not None and len(image) == len(table.columns))
        return any((name, table.identify(table.key_of(image))) in self.rows for image in whole)
