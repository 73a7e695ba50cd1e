"""Triggers: the SQL of those that capture the changes of one table."""

from __future__ import annotations

from collections.abc import Iterator

from takeback_acts.rows.sqlite.introspection import SqliteTable
from takeback_acts.rows.sqlite.statements import collate, quoted

INSERTED, DELETED, UPDATED = 1, 2, 3
MAYBE = "takeback_maybe"


def select(seen: str, number: int, table: SqliteTable) -> str:
    """What was seen of the table of this number, in order."""
    values = "".join(f", v{place}" for place in range(2 * len(table.columns)))
    return f"SELECT seq, w{values} FROM temp.{seen} WHERE t = {number} ORDER BY seq"


def of(seen: str, number: int, table: SqliteTable, careful: bool) -> Iterator[str]:
    """The triggers of the table of this number, which write to the table `seen`."""
    return _Triggers(seen, number, table).texts(careful)


class _Triggers:
    def __init__(self, seen: str, number: int, table: SqliteTable) -> None:
        self._seen = seen
        self._number = number
        self._table = table
        width = len(table.columns)
        self._first = ", ".join(f"v{place}" for place in range(width))
        self._second = ", ".join(f"v{place}" for place in range(width, 2 * width))
        self._old = ", ".join(f"OLD.{quoted(name)}" for name in table.names)
        self._new = ", ".join(f"NEW.{quoted(name)}" for name in table.names)

    def texts(self, careful: bool) -> Iterator[str]:
        found = self._found() if careful else ""
        forget = self._forget() if careful else ""
        first, second, old, new = self._first, self._second, self._old, self._new
        yield self._trigger("i", "AFTER INSERT", found + self._note(INSERTED, second, new))
        yield self._trigger("d", "AFTER DELETE", forget + self._note(DELETED, first, old))
        both = self._note(UPDATED, f"{first}, {second}", f"{old}, {new}")
        yield self._trigger("u", "AFTER UPDATE", found + forget + both)
        if careful:
            other = f" AND NOT ({self._key_is('OLD')})"
            yield self._trigger("bi", "BEFORE INSERT", self._may_go(""))
            yield self._trigger("bu", "BEFORE UPDATE", self._may_go(other))

    def _trigger(self, suffix: str, when: str, body: str) -> str:
        name = f"takeback_{self._number}_{suffix}"
        return f"CREATE TEMP TRIGGER {name} {when} ON main.{quoted(self._table.name)} BEGIN {body} END"

    def _note(self, kind: int, columns: str, values: str) -> str:
        return f"INSERT INTO {self._seen} (t, w, {columns}) VALUES ({self._number}, {kind}, {values});"

    def _may_go(self, besides: str) -> str:
        """Notes the rows that share with the new one what no two rows may share."""
        names = self._table.names
        columns = ", ".join(map(quoted, names))
        notes = [
            f"INSERT INTO {MAYBE} (t, {self._first}) SELECT {self._number}, {columns}"
            f" FROM main.{quoted(self._table.name)} WHERE ({way}){besides};"
            for way in self._ways()
        ]
        return f"DELETE FROM {MAYBE} WHERE t = {self._number};" + "".join(notes)

    def _ways(self) -> Iterator[str]:
        yield self._key_is("NEW")
        for index in self._table.indexes:
            if index.expressions:
                yield " AND ".join(f"({each}) = ({self._of_new(each)})" for each in index.expressions)
            elif not index.of_key:
                yield " AND ".join(
                    f"{quoted(name)} = NEW.{quoted(name)} COLLATE {quoted(collation)}"
                    for name, collation in zip(index.columns, index.collations, strict=True)
                )

    def _of_new(self, expression: str) -> str:
        """What an expression over the columns comes to for the new row."""
        row = ", ".join(f"NEW.{quoted(name)} AS {quoted(name)}" for name in self._table.names)
        return f"SELECT {expression} FROM (SELECT {row})"

    def _forget(self) -> str:
        """A noted row that a statement of its own changes is not one that was replaced."""
        return f"DELETE FROM {MAYBE} WHERE t = {self._number} AND {self._noted_is('OLD')};"

    def _found(self) -> str:
        """Tells the noted rows that are gone, or whose key the new row has."""
        table = self._table
        here = " AND ".join(f"r.{quoted(name)} = m.v{table.index(name)}" for name in table.key)
        return (
            f"INSERT INTO {self._seen} (t, w, {self._first})"
            f" SELECT DISTINCT {self._number}, {DELETED}, {self._first} FROM {MAYBE} m"
            f" WHERE m.t = {self._number} AND (({self._noted_is('NEW')}) OR NOT EXISTS"
            f" (SELECT 1 FROM main.{quoted(table.name)} r WHERE {here}));"
            f"DELETE FROM {MAYBE} WHERE t = {self._number};"
        )

    def _noted_is(self, side: str) -> str:
        table = self._table
        return " AND ".join(
            f"v{table.index(name)} = {side}.{quoted(name)}{collate(table, name)}" for name in table.key
        )

    def _key_is(self, side: str) -> str:
        return " AND ".join(
            f"{quoted(name)} = {side}.{quoted(name)}{collate(self._table, name)}" for name in self._table.key
        )
