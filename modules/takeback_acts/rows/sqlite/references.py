"""References: whether the foreign keys that some changes touch hold.

What SQLite deferred it checks at COMMIT, and then it does not tell which of them is broken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from takeback_acts.rows.changes import Change
from takeback_acts.rows.dialect import Link, Violation
from takeback_acts.rows.sqlite.introspection import SqliteTable
from takeback_acts.rows.sqlite.statements import collate, quoted
from takeback_acts.rows.tables import Catalog, ForeignKey, Image, Table, Value

_AT_ONCE = 400


def broken(link: Link, catalog: Catalog, changes: Sequence[Change]) -> Violation | None:
    """The first foreign key that does not hold for the rows as they are now."""
    names = {change.table for change in changes}
    for table in catalog.tables.values():
        for key in table.foreign_keys:
            # What is referred to may be no table that we know; COMMIT looks at that.
            if not key.to_columns or key.to not in catalog.tables:
                continue
            if table.name in names and _orphaned(link, table, key, _written(table, key, changes)):
                return _named(table, key)
            if key.to in names and _left(link, catalog, table, key, changes):
                return _named(table, key)
    return None


def _named(table: Table, key: ForeignKey) -> Violation:
    return Violation("foreign_key", key.name, table.name, key.columns)


def _written(table: Table, key: ForeignKey, changes: Iterable[Change]) -> list[Image]:
    places = [table.index(column) for column in key.columns]
    return [
        change.after
        for change in changes
        if change.table == table.name
        and change.after is not None
        and (change.before is None or any(change.before[p] != change.after[p] for p in places))
    ]


def _orphaned(link: Link, table: Table, key: ForeignKey, images: list[Image]) -> bool:
    """Whether one of these rows names a row that is not there."""
    assert isinstance(table, SqliteTable)
    sides = [quoted(name) + collate(table, name) for name in table.key]
    wanted = [table.key_of(image) for image in images]
    return _any(link, table, key, sides, wanted)


def _left(link: Link, catalog: Catalog, table: Table, key: ForeignKey, changes: Iterable[Change]) -> bool:
    """Whether a row still names one of those that went, or were named otherwise before."""
    to = catalog.tables.get(key.to)
    if to is None:
        return False
    places = [to.index(column) for column in key.to_columns]
    gone = [
        tuple(change.before[place] for place in places)
        for change in changes
        if change.table == to.name
        and change.before is not None
        and (change.after is None or any(change.before[p] != change.after[p] for p in places))
    ]
    return _any(link, table, key, [quoted(column) for column in key.columns], gone)


def _any(
    link: Link, table: Table, key: ForeignKey, sides: list[str], wanted: Sequence[tuple[Value, ...]]
) -> bool:
    held = " AND ".join(f"c.{quoted(column)} IS NOT NULL" for column in key.columns)
    match = " AND ".join(
        f"p.{quoted(there)} = c.{quoted(here)}"
        for here, there in zip(key.columns, key.to_columns, strict=True)
    )
    for start in range(0, len(wanted), _AT_ONCE):
        part = wanted[start : start + _AT_ONCE]
        one = f"({', '.join('?' * len(sides))})"
        left = ", ".join(f"c.{side}" for side in sides)
        among = f"({left}) IN (VALUES {', '.join([one] * len(part))})"
        sql = (
            f"SELECT 1 FROM main.{quoted(table.name)} c WHERE {among} AND {held} AND NOT EXISTS"
            f" (SELECT 1 FROM main.{quoted(key.to)} p WHERE {match}) LIMIT 1"
        )
        if link.execute(sql, [value for values in part for value in values]):
            return True
    return False
