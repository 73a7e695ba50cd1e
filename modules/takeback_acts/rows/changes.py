"""Changes: what happened to rows, and what of it is left in the end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .tables import Catalog, Image, Key, Table


class Event(NamedTuple):
    """One row as it was before a statement and after it, as captured; None where there was no row."""

    table: str
    before: Image | None
    after: Image | None


class Change(NamedTuple):
    """The net change of one row. Both images: an update, its key may differ."""

    table: str
    before: Image | None
    after: Image | None


def identical(one: Image, other: Image) -> bool:
    """Whether two images are the same by type and value: 1 is not 1.0, and -0.0 is not 0.0."""
    if one is other:
        return True
    if one != other:
        return False
    for a, b in zip(one, other, strict=True):
        kind = type(a)
        if kind is not type(b) or (kind is float and not a and repr(a) != repr(b)):
            return False
    return True


def same(a: object, b: object) -> bool:
    """Whether two values are the same by type and value."""
    if a is b:
        return True
    return a == b and type(a) is type(b) and (bool(a) or type(a) is not float or repr(a) == repr(b))


def changed(table: Table, change: Change) -> tuple[str, ...]:
    """The columns that an update set, generated ones left out; () for an insert or a delete."""
    before, after = change.before, change.after
    if before is None or after is None:
        return ()
    return tuple(
        column.name
        for column, a, b in zip(table.columns, before, after, strict=True)
        if not column.generated and not same(a, b)
    )


class _Line:
    """A row followed through the events: what it was at first, and what it is now."""

    __slots__ = ("after", "before", "table")

    def __init__(self, table: str, before: Image | None, after: Image | None) -> None:
        self.table = table
        self.before = before
        self.after = after


_NONE = _Line("", None, None)


def net(events: Iterable[Event], catalog: Catalog) -> list[Change]:
    """What the events come to, a change for each row, in the order of the rows' first events.

    A row is followed by its key, also where the key changes. A row that was deleted and put back as it was,
    or inserted and deleted, is no change.
    """
    lines = _Lines(catalog)
    for event in events:
        lines.follow(event)
    return lines.changes()


class _Lines:
    def __init__(self, catalog: Catalog) -> None:
        self._tables = catalog.tables
        self._all: list[_Line] = []
        self._now: dict[tuple[str, Key], list[_Line]] = {}
        self._gone: dict[tuple[str, Key], _Line] = {}

    def follow(self, event: Event) -> None:
        name, before, after = event
        table = self._tables[name]
        if before is not None:
            line = self._taken(name, table, before)
        else:
            assert after is not None, "an event has a row on one side at least"
            line = self._gone.pop((name, table.identify(table.key_of(after))), _NONE)
            if line is _NONE:
                line = _Line(name, None, None)
                self._all.append(line)
        line.after = after
        if after is not None:
            self._now.setdefault((name, table.identify(table.key_of(after))), []).append(line)
        elif line.before is not None:
            self._gone[name, table.identify(table.key_of(line.before))] = line

    def _taken(self, name: str, table: Table, before: Image) -> _Line:
        """The line of the row that is now `before`. Of two under one key, as there can be within a statement
        whose key is checked at its end, it is the one that looks so."""
        place = (name, table.identify(table.key_of(before)))
        lines = self._now.get(place, ())
        for line in lines:
            if line.after is not None and identical(line.after, before):
                if len(lines) == 1:
                    del self._now[place]
                else:
                    self._now[place].remove(line)
                return line
        line = _Line(name, before, None)
        self._all.append(line)
        return line

    def changes(self) -> list[Change]:
        return [
            Change(line.table, line.before, line.after)
            for line in self._all
            if (line.before is not None or line.after is not None)
            and (line.before is None or line.after is None or not identical(line.before, line.after))
        ]
