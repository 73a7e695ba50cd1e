"""Parking: updates that exchange values which no two rows may share, with one of them out of the way
meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from takeback_acts.rows.changes import Change
from takeback_acts.rows.dialect import Dialect
from takeback_acts.rows.tables import Image, Table, Value


@dataclass
class Parked:
    """A row to be out of the way: the values that its columns take first, or `stuck` when it can't."""

    change: Change
    values: dict[str, Value] = field(default_factory=dict)
    stuck: bool = False


def parked(dialect: Dialect, table: Table, changes: Sequence[Change]) -> list[Parked]:
    """The rows that hold what another of these updates wants, of each of what no two rows may share."""
    found: dict[int, Parked] = {}
    for columns in _shared(table):
        places = [table.index(column) for column in columns]
        moving = [
            (number, change)
            for number, change in enumerate(changes)
            if any(_loose(b, p) != _loose(a, p) for b, a in [_both(change)] for p in places)
        ]
        wanted: dict[tuple[Value, ...], int] = {}
        for number, change in moving:
            wanted[tuple(_loose(_both(change)[1], place) for place in places)] = number
        for number, change in moving:
            held = tuple(_loose(_both(change)[0], place) for place in places)
            if None not in held and wanted.get(held, number) != number:
                _park(dialect, table, columns, found.setdefault(number, Parked(change)), number)
    return list(found.values())


def columns(table: Table) -> set[str]:
    """The columns of which there are no two alike, together or alone."""
    return {name for shared in _shared(table) for name in shared}


def _shared(table: Table) -> Iterator[tuple[str, ...]]:
    yield table.key
    for unique in table.uniques:
        if unique.columns and not unique.deferrable:
            yield unique.columns


def _both(change: Change) -> tuple[Image, Image]:
    assert change.before is not None
    assert change.after is not None
    return change.before, change.after


def _loose(image: Image, place: int) -> Value:
    """A value as any collation may take it: one too many parked does no harm."""
    value = image[place]
    return value.lower().rstrip(" ") if isinstance(value, str) else value


def _park(dialect: Dialect, table: Table, columns: Sequence[str], parked: Parked, number: int) -> None:
    if not parked.values.keys().isdisjoint(columns):
        return
    free = [table.columns[table.index(name)] for name in columns]
    for column in free:
        if column.nullable and not column.generated and column.name not in table.key:
            parked.values[column.name] = None
            return
    for column in free:
        if not column.generated:
            value = dialect.spare(table, column.name, number)
            if value is not None:
                parked.values[column.name] = value
                return
    parked.stuck = True
