"""Coverage: which tables a statement may change, by nothing but the names in its text and the foreign keys.

It says of no table too little: a table is written by its name, or by a foreign key, or by a trigger; and
where there are triggers all tables are covered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from takeback_acts.rows.tables import Catalog

_READS = re.compile(r"\s*(SELECT|PRAGMA|SAVEPOINT|RELEASE|EXPLAIN)\b", re.IGNORECASE)
_ROLLS_BACK = re.compile(r"\s*ROLLBACK\b", re.IGNORECASE)
_ACTING = ("CASCADE", "SET NULL", "SET DEFAULT")
_MOST_KNOWN = 500
_LONGEST_KNOWN = 20_000


class Coverage:
    """Of one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._named = {_folded(name): name for name in (*catalog.tables, *catalog.watched)}
        self._behind = _behind(catalog)
        self._known: dict[str, frozenset[str]] = {}

    def of(self, statement: str) -> frozenset[str]:
        """The tables."""
        found = self._known.get(statement)
        if found is None:
            found = self._reached(statement)
            if len(statement) <= _LONGEST_KNOWN:
                if len(self._known) >= _MOST_KNOWN:
                    self._known.clear()
                self._known[statement] = found
        return found

    def _reached(self, statement: str) -> frozenset[str]:
        if _READS.match(statement):
            return frozenset()
        text = statement.lower()
        left = [name for folded, name in self._named.items() if folded in text]
        reached: set[str] = set()
        while left:
            name = left.pop()
            if name not in reached:
                reached.add(name)
                left += self._behind.get(name, ())
        return frozenset(reached)


def rolls_back(statement: str) -> bool:
    """Whether a statement takes back what was done since a savepoint, triggers of ours too."""
    return _ROLLS_BACK.match(statement) is not None


def _folded(name: str) -> str:
    """The name as it must stand in a statement, in whatever quotes and case."""
    return name.replace('"', '""').lower()


def _behind(catalog: Catalog) -> Mapping[str, set[str]]:
    """By table, those whose rows change when its rows do."""
    found: dict[str, set[str]] = {}
    for table in catalog.tables.values():
        for key in table.foreign_keys:
            if key.on_delete in _ACTING or key.on_update in _ACTING:
                found.setdefault(key.to, set()).add(table.name)
    return found
