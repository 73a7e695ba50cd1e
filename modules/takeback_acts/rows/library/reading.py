"""Reading: the engine's changes and effects as rows and conflicts with values by column."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from takeback_acts.rows.changes import Change
from takeback_acts.rows.effects import AGAINST, Effect
from takeback_acts.rows.entries import Stored
from takeback_acts.rows.library.plans import Conflict, Operation, Row
from takeback_acts.rows.rules import Rules
from takeback_acts.rows.tables import Catalog, Column, Image, Key, Table, same

_READERS: Mapping[str, Callable[[str], Any]] = {
    "smallint": int,
    "integer": int,
    "bigint": int,
    "boolean": lambda text: text in ("t", "true"),
    "real": float,
    "double precision": float,
    "bytea": lambda text: bytes.fromhex(text[2:]),
}
"""What PostgreSQL's texts are in Python; of every other type it is the text."""


class Reader:
    """Reads by the tables as they are, leaving out what no one promises of them."""

    def __init__(self, engine: str, catalog: Catalog, rules: Rules) -> None:
        self._catalog = catalog
        self._rules = rules
        self._texts = engine == "postgresql"

    def rows(self, changes: Iterable[Change]) -> tuple[Row, ...]:
        """The changes; an update of what nobody promises is none."""
        made = (self._row(change) for change in changes)
        return tuple(row for row in made if row is not None)

    def _row(self, change: Change) -> Row | None:
        table = self._catalog.tables[change.table]
        before, after = change.before, change.after
        places = self._promised(table)
        operation: Operation = "update"
        if before is None or after is None:
            operation = "insert" if before is None else "delete"
        else:
            places = [place for place in places if not same(before[place], after[place])]
            if not places:
                return None
        image = after if before is None else before
        assert image is not None
        return Row(
            table.name,
            self._named(table, table.key_of(image)),
            operation,
            self._values(table, before, places),
            self._values(table, after, places),
        )

    def _promised(self, table: Table) -> list[int]:
        derived = self._rules.derived.get(table.name, frozenset())
        return [
            place
            for place, column in enumerate(table.columns)
            if not column.generated and column.name not in derived
        ]

    def _values(self, table: Table, image: Image | None, places: Sequence[int]) -> dict[str, Any] | None:
        if image is None:
            return None
        return {table.names[place]: self._value(table.columns[place], image[place]) for place in places}

    def _named(self, table: Table, key: Key) -> dict[str, Any]:
        columns = [table.columns[table.index(name)] for name in table.key]
        return {column.name: self._value(column, value) for column, value in zip(columns, key, strict=False)}

    def _value(self, column: Column, value: Any) -> Any:
        reader = _READERS.get(column.type) if self._texts and isinstance(value, str) else None
        return reader(value) if reader is not None else value

    def conflicts(self, effects: Iterable[Effect], stored: Sequence[Stored]) -> tuple[Conflict, ...]:
        """What stands against it, among the effects."""
        return tuple(self._conflict(each, stored) for each in effects if each.action in AGAINST)

    def _conflict(self, effect: Effect, stored: Sequence[Stored]) -> Conflict:
        table = self._catalog.tables.get(effect.table)
        if table is None:
            key: dict[str, Any] = dict(zip(_old_key(effect, stored), effect.key, strict=False))
            base, ours, theirs = effect.base, effect.ours, effect.theirs
        else:
            key = self._named(table, effect.key)
            base, ours, theirs = (
                self._told(table, effect.column, value) for value in (effect.base, effect.ours, effect.theirs)
            )
        return Conflict(
            effect.table, key, effect.column, base, ours, theirs, effect.reason, effect.constraint
        )

    def _told(self, table: Table, name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {column: self._told(table, column, each) for column, each in value.items()}
        return self._value(table.columns[table.index(name)], value) if table.has(name) else value


def _old_key(effect: Effect, stored: Sequence[Stored]) -> list[str]:
    """The names of a key's columns in a table that is no more."""
    for each in stored:
        if each.id == effect.entry:
            names: list[str] = json.loads(each.shapes).get(effect.table, {}).get("k", [])
            return names
    return []
