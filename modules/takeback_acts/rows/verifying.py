"""Verifying: what really happened against what was planned, to the row and the value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from takeback_acts.rows.changes import Change
from takeback_acts.rows.dialect import Dialect, Link
from takeback_acts.rows.overlay import Overlay
from takeback_acts.rows.tables import Catalog, Image, Key, Table, same


class Stray(NamedTuple):
    """A row that is not as planned: what would make it so, and whether the plan speaks of the row."""

    change: Change
    planned: bool


def strays(overlay: Overlay, planned: Sequence[Change], actual: Iterable[Change]) -> list[Stray]:
    """Every row that is not as planned, and every row that changed without a plan."""
    left = {_place(overlay, change): change for change in actual}
    found = []
    for change in planned:
        done = left.pop(_place(overlay, change), None)
        before, after = (change.before, change.after) if done is None else (done.after, change.after)
        if not _alike(overlay, change.table, before, after):
            found.append(Stray(Change(change.table, before, after), True))
    found += [
        Stray(Change(change.table, change.after, change.before), False)
        for change in left.values()
        if not _alike(overlay, change.table, change.before, change.after)
    ]
    return found


def _place(overlay: Overlay, change: Change) -> tuple[str, bool, Key]:
    """A row that was there is known by the key it had, another by that it gets."""
    name, before, after = change
    table = overlay.sheet(name).table
    if before is not None:
        return (name, True, table.identify(table.key_of(before)))
    assert after is not None
    return (name, False, table.identify(table.key_of(after)))


def _alike(overlay: Overlay, name: str, one: Image | None, other: Image | None) -> bool:
    if one is None or other is None:
        return one is other
    return overlay.sheet(name).alike(one, other)


def kept(overlay: Overlay, stray: Stray) -> tuple[str, ...]:
    """The columns of a planned row that a trigger insists on; () where that is no explanation."""
    table = overlay.sheet(stray.change.table).table
    now, wanted = stray.change.before, stray.change.after
    if not stray.planned or not table.triggers or now is None or wanted is None:
        return ()
    columns = tuple(
        table.names[place]
        for place in overlay.sheet(table.name).promised
        if not same(now[place], wanted[place])
    )
    return () if set(columns) & set(table.key) else columns


def cause(catalog: Catalog, stray: Stray, planned: Iterable[Change]) -> str:
    """What in the database changed a row besides: a foreign key that acts on it, or triggers, by name."""
    table = catalog.tables[stray.change.table]
    gone = {change.table for change in planned if change.before is not None}
    for key in table.foreign_keys:
        if key.to in gone and (_acts(key.on_delete) or _acts(key.on_update)):
            return key.name
    names = {change.table for change in planned} | {table.name}
    triggers = [
        name for each in sorted(names) if each in catalog.tables for name in catalog.tables[each].triggers
    ]
    return ", ".join(triggers)


def _acts(action: str) -> bool:
    return action not in ("NO ACTION", "RESTRICT", "")


def misread(
    link: Link, dialect: Dialect, catalog: Catalog, actual: Iterable[Change]
) -> list[tuple[str, Key]]:
    """The rows that the database, asked once more, does not hold as they were captured."""
    sides: dict[str, tuple[list[Image], list[Image]]] = {}
    for name, before, after in actual:
        was, comes = sides.setdefault(name, ([], []))
        if before is not None:
            was.append(before)
        if after is not None:
            comes.append(after)
    found = []
    for name, (was, comes) in sides.items():
        table = catalog.tables[name]
        rows: dict[Key, Image | None] = dict.fromkeys(_known(table, was))
        rows.update(zip(_known(table, comes), comes, strict=True))
        found += [(name, key) for key in _misread(link, dialect, table, rows)]
    return found


def _known(table: Table, images: Iterable[Image]) -> Iterable[Key]:
    keys = table.keys_of(images)
    return map(table.identify, keys) if table.folds else keys


def _misread(link: Link, dialect: Dialect, table: Table, rows: dict[Key, Image | None]) -> list[Key]:
    held, equal = dialect.read(link, table, rows), table.equal
    if not table.loose and held == {key: image for key, image in rows.items() if image is not None}:
        return []
    return [
        key
        for key, image in rows.items()
        if ((now := held.get(key)) is not image) and (now is None or image is None or not equal(now, image))
    ]
