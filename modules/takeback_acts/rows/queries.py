"""Queries: what is asked of one table, as SQL whose every value is bound and every name is the catalog's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from takeback.errors import NotFoundError
from takeback_acts.rows import models, told
from takeback_acts.rows.dialect import Dialect
from takeback_acts.rows.tables import Column, Table
from takeback_acts.rows.values import encode

_OPERATORS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "like": "LIKE"}


class Sql(NamedTuple):
    """A statement and the values for its marks."""

    text: str
    values: Sequence[Any]


class Builder:
    """Writes statements on one table for one engine; a caller's names are looked up, never copied."""

    def __init__(self, dialect: Dialect, table: Table) -> None:
        self._dialect = dialect
        self._table = table

    def columns(self, names: Sequence[str]) -> list[Column]:
        """The columns of these names; raises NotFoundError `rows.column`."""
        return [self._column(name) for name in names]

    def select(self, args: models.Query, columns: Sequence[Column], limit: int) -> Sql:
        """Rows that match, in order; one more than `limit`, to tell whether there are others."""
        tests = [self._test(name, test) for name, test in args.where.items()]
        where = " AND ".join(test.text for test in tests)
        order = ", ".join(self._ordered(name) for name in args.order or self._table.key)
        listed = ", ".join(self._quoted(column.name) for column in columns)
        mark = self._dialect.mark
        text = f"SELECT {listed} FROM {self._dialect.quote(self._table.name)}"
        text += f" WHERE {where}" if where else ""
        text += f" ORDER BY {order} LIMIT {mark} OFFSET {mark}"
        return Sql(text, [*(value for test in tests for value in test.values), limit + 1, args.offset])

    def insert(self, row: dict[str, models.Value]) -> Sql:
        """One row with the columns that are given."""
        table, mark = self._dialect.quote(self._table.name), self._dialect.mark
        if not row:
            return Sql(f"INSERT INTO {table} DEFAULT VALUES", ())
        names = ", ".join(self._quoted(self._writable(name)) for name in row)
        marks = ", ".join(mark for _ in row)
        return Sql(f"INSERT INTO {table} ({names}) VALUES ({marks})", self._values(row))

    def update(self, key: Sequence[Any], sets: dict[str, models.Value]) -> Sql:
        """The row of a key, with columns set."""
        given = ", ".join(f"{self._quoted(self._writable(name))} = {self._dialect.mark}" for name in sets)
        text = f"UPDATE {self._dialect.quote(self._table.name)} SET {given} WHERE {self._keyed()}"
        return Sql(text, [*self._values(sets), *key])

    def delete(self, key: Sequence[Any]) -> Sql:
        """The row of a key, removed."""
        return Sql(f"DELETE FROM {self._dialect.quote(self._table.name)} WHERE {self._keyed()}", key)

    # ------------------------------------------------------------------ parts

    def _keyed(self) -> str:
        return " AND ".join(f"{self._quoted(name)} = {self._dialect.mark}" for name in self._table.key)

    def _values(self, given: dict[str, models.Value]) -> list[Any]:
        return [self._encoded(name, value) for name, value in given.items()]

    def _encoded(self, column: str, value: models.Value) -> Any:
        return encode(self._dialect.name, value, f"{self._table.name}.{column}")

    def _quoted(self, column: str) -> str:
        quoted = '"' + column.replace('"', '""') + '"'
        return quoted.replace("%", "%%") if self._dialect.mark == "%s" else quoted

    def _column(self, name: str) -> Column:
        if not self._table.has(name):
            raise NotFoundError(
                "rows.column",
                f"{self._table.name:.300} has no column {name!r:.100}",
                "`rows.tables` tells its columns.",
            )
        return self._table.columns[self._table.index(name)]

    def _writable(self, name: str) -> str:
        column = self._column(name)
        if column.generated:
            where = f"{self._table.name}.{name}"
            raise told.unfit(f"{where} is computed by the database and can't be set")
        return column.name

    def _ordered(self, name: str) -> str:
        down = name.startswith("-") and not self._table.has(name)
        column = self._column(name[1:] if down else name)
        return self._quoted(column.name) + (" DESC" if down else "")

    def _test(self, name: str, test: models.Value | models.Test) -> Sql:
        column = self._column(name).name
        if not isinstance(test, models.Test):
            return self._equals(column, test)
        parts = list(self._parts(column, test))
        return Sql(" AND ".join(part.text for part in parts) or "1 = 1", [v for p in parts for v in p.values])

    def _parts(self, column: str, test: models.Test) -> Iterator[Sql]:
        """What a column is tested for, one by one."""
        for name in sorted(test.model_fields_set):
            value = getattr(test, name)
            if name == "in_":
                yield self._among(column, value or [])
            elif name == "eq":
                yield self._equals(column, value)
            elif name == "ne":
                yield self._differs(column, value)
            elif name == "is_null":
                yield self._is_null(column, yes=bool(value))
            else:
                mark = self._dialect.mark
                text = f"{self._quoted(column)} {_OPERATORS[name]} {mark}"
                yield Sql(text, [self._encoded(column, value)])

    def _equals(self, column: str, value: models.Value) -> Sql:
        if value is None:
            return self._is_null(column, yes=True)
        return Sql(f"{self._quoted(column)} = {self._dialect.mark}", [self._encoded(column, value)])

    def _differs(self, column: str, value: models.Value) -> Sql:
        if value is None:
            return self._is_null(column, yes=False)
        quoted = self._quoted(column)
        text = f"({quoted} <> {self._dialect.mark} OR {quoted} IS NULL)"
        return Sql(text, [self._encoded(column, value)])

    def _is_null(self, column: str, *, yes: bool) -> Sql:
        return Sql(f"{self._quoted(column)} IS {'' if yes else 'NOT '}NULL", ())

    def _among(self, column: str, values: Sequence[models.Value]) -> Sql:
        there = [value for value in values if value is not None]
        if not there:
            return self._is_null(column, yes=True) if values else Sql("1 = 0", ())
        marks = ", ".join(self._dialect.mark for _ in there)
        text = f"{self._quoted(column)} IN ({marks})"
        if len(there) < len(values):
            text = f"({text} OR {self._quoted(column)} IS NULL)"
        return Sql(text, [self._encoded(column, value) for value in there])
