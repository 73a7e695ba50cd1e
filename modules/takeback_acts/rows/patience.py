"""Patience: rows that stand in each other's way by more than their columns tell, set one by one.

An index on part of the rows, or on expressions, keeps apart what no column shows. Whoever meets another row
waits until that has moved on; where all of them wait for each other, they step out of the way first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from takeback_acts.rows.dialect import Dialect, Link
from takeback_acts.rows.tables import Key, Table, Value

Set = tuple[Key, dict[str, Value]]
_SAVEPOINT = "takeback_row"


class Patience:
    """Sets rows of one table in whatever order works; `at` is the key of the last that did not."""

    def __init__(self, link: Link, dialect: Dialect, table: Table) -> None:
        self.at: Key = ()
        self._link = link
        self._dialect = dialect
        self._table = table
        self._numbers = count()
        self._error: Exception | None = None

    def set(self, sets: Sequence[Set]) -> None:
        """Sets them all. Raises the driver's error of the last row that stayed, and of all other trouble."""
        left, moved = list(sets), False
        while left:
            stuck = [each for each in left if not self._tried(*each)]
            if len(stuck) == len(left):
                assert self._error is not None
                if moved:
                    raise self._error
                stuck, moved = [(self._aside(key, values), values) for key, values in stuck], True
            left = stuck

    def _aside(self, key: Key, values: Mapping[str, Value]) -> Key:
        """Takes a row out of the way with each of its columns that can; the key that it has then."""
        for name in values:
            for value in self._spares(name):
                if self._tried(key, {name: value}):
                    if name in self._table.key:
                        place = self._table.key.index(name)
                        key = (*key[:place], value, *key[place + 1 :])
                    break
        return key

    def _spares(self, name: str) -> Iterator[Value]:
        column = self._table.columns[self._table.index(name)]
        if column.nullable and name not in self._table.key:
            yield None
        value = self._dialect.spare(self._table, name, next(self._numbers))
        if value is not None:
            yield value

    def _tried(self, key: Key, values: Mapping[str, Value]) -> bool:
        self._dialect.savepoint(self._link, _SAVEPOINT)
        try:
            self._dialect.update(self._link, self._table, [(key, values)])
        except Exception as error:
            broken = self._dialect.violation(error)
            if broken is None:
                raise
            self._dialect.rollback_to(self._link, _SAVEPOINT)
            self.at, self._error = key, error
            return False
        self._dialect.release(self._link, _SAVEPOINT)
        return True
