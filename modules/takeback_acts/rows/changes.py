"""Changes: what happened to rows, and what of it is left in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from takeback.errors import RefusedError
from takeback_acts.rows.tables import Catalog, Image, Key, Table, identical, same


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


def net(events: Sequence[Event], catalog: Catalog) -> list[Change]:
    """What the events come to, a change for each row, in the order of the rows' first events.

    A row that was deleted and put back as it was, or inserted and deleted, is no change. Events of triggers
    within triggers may stand in any order: a row is followed from image to image.
    RefusedError("rows.capture") when it can't be followed.
    """
    tables = catalog.tables
    keys = [_keys(tables[name], before, after) for name, before, after in events]
    if len(events) == 1:
        return [Change(*event) for event in events if not _idle(event)]
    touched = Counter(
        (event[0], key)
        for event, pair in zip(events, keys, strict=True)
        for key in {*pair}
        if key is not None
    )
    found: list[tuple[int, Change]] = []
    busy: list[tuple[int, Event, tuple[Key | None, Key | None]]] = []
    for place, (event, pair) in enumerate(zip(events, keys, strict=True)):
        if all(key is None or touched[event[0], key] == 1 for key in pair):
            if not _idle(event):
                found.append((place, Change(*event)))
        else:
            busy.append((place, event, pair))
    if busy:
        found += _paths(busy, catalog)
        found.sort(key=itemgetter(0))
    changes = [change for _, change in found]
    return joined(changes, tables) if busy else changes


def joined(changes: list[Change], tables: Mapping[str, Table]) -> list[Change]:
    """The same changes, but a row that went and another that came under its key are one that changed."""
    gone = {
        (change.table, _key(tables[change.table], change.before)): place
        for place, change in enumerate(changes)
        if change.before is not None and change.after is None
    }
    made: list[Change | None] = list(changes)
    for place, change in enumerate(changes):
        if change.before is None and change.after is not None:
            other = gone.get((change.table, _key(tables[change.table], change.after)))
            if other is not None:
                first, last = sorted((place, other))
                made[first] = Change(change.table, changes[other].before, change.after)
                made[last] = None
    return [change for change in made if change is not None and not _idle(change)]


def _key(table: Table, image: Image) -> Key:
    return table.identify(table.key_of(image))


def _keys(table: Table, before: Image | None, after: Image | None) -> tuple[Key | None, Key | None]:
    return (
        None if before is None else _key(table, before),
        None if after is None else _key(table, after),
    )


def _idle(event: Event | Change) -> bool:
    return event.before is not None and event.after is not None and identical(event.before, event.after)


def _paths(
    busy: list[tuple[int, Event, tuple[Key | None, Key | None]]], catalog: Catalog
) -> list[tuple[int, Change]]:
    """Rows with several events. Images, and the absence of a row, are places, and events lead from one to the
    next: what is left more often than it is reached is where a row began."""
    ways: dict[_Place, list[tuple[int, _Place]]] = {}
    balance: Counter[_Place] = Counter()
    for order, (name, before, after), (old, new) in reversed(busy):
        here = _place(name, before, new)
        there = _place(name, after, old)
        ways.setdefault(here, []).append((order, there))
        balance[here] += 1
        balance[there] -= 1
    found = []
    for start in list(reversed(ways)):
        for _ in range(balance[start]):
            first, end = _walk(ways, start)
            # From absence to absence: what was there in between is another row's end.
            if start[1] is not None or end[1] is not None:
                found.append((first, Change(start[0], start[1], end[1])))
    _told_apart([change for _, change in found], catalog)
    return found


_Place: TypeAlias = "tuple[str, Image | None, tuple[object, ...]]"


def _place(name: str, image: Image | None, other: Key | None) -> _Place:
    """Where a row is: its image told apart by type as well; or absent, under the key of the event's other
    side."""
    if image is None:
        return (name, None, other or ())
    return (name, image, tuple(type(v) if v or type(v) is not float else repr(v) for v in image))


def _walk(ways: dict[_Place, list[tuple[int, _Place]]], start: _Place) -> tuple[int, _Place]:
    """From event to event until none leads on: the first of the events, and where it ends."""
    here, first = start, ways[start][-1][0]
    while ways.get(here):
        order, here = ways[here].pop()
        first = min(first, order)
    return first, here


def _told_apart(changes: list[Change], catalog: Catalog) -> None:
    for images in ([c.before for c in changes], [c.after for c in changes]):
        seen = set()
        for change, image in zip(changes, images, strict=True):
            if image is None:
                continue
            table = catalog.tables[change.table]
            place = (change.table, table.identify(table.key_of(image)))
            if place in seen:
                raise RefusedError(
                    "rows.capture",
                    f"What triggers did to a row of {change.table} can't be followed.",
                    "Write to the table that its triggers write to, or leave this change to a person.",
                )
            seen.add(place)
