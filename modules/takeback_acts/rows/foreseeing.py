"""Foreseeing: whether a plan is sure to do what it says, so that a preview need not try it.

It is where nothing in the database could refuse one of its rows, or do more than what is planned.
"""

from __future__ import annotations

from collections.abc import Sequence

from takeback_acts.rows import parking
from takeback_acts.rows.changes import Change
from takeback_acts.rows.overlay import Overlay
from takeback_acts.rows.tables import Catalog, Image, Table


def certain(catalog: Catalog, overlay: Overlay, planned: Sequence[Change]) -> bool:
    """Whether these changes will be made exactly as they are."""
    by_table: dict[str, list[Change]] = {}
    for change in planned:
        by_table.setdefault(change.table, []).append(change)
    return all(
        overlay.sheet(name).plain and _of_table(catalog, catalog.tables[name], changes)
        for name, changes in by_table.items()
    )


def _of_table(catalog: Catalog, table: Table, changes: Sequence[Change]) -> bool:
    referred = {
        column
        for other in catalog.tables.values()
        for key in other.foreign_keys
        if key.to == table.name
        for column in key.to_columns
    }
    if table.triggers or table.checks or any(not each.columns or each.partial for each in table.uniques):
        return False
    bound = {column for key in table.foreign_keys for column in key.columns}
    watched = frozenset(map(table.index, referred | bound | parking.columns(table) | _unique(table)))
    filled = [place for place in table.places if not table.columns[place].nullable]
    inserts = not table.uniques and not bound
    for _, before, after in changes:
        if after is None:
            if referred:
                return False
        elif any(after[place] is None for place in filled):
            return False
        elif before is None:
            if not inserts:
                return False
        elif _touches(before, after, watched):
            return False
    return True


def _unique(table: Table) -> set[str]:
    return {column for unique in table.uniques for column in unique.columns}


def _touches(before: Image, after: Image, places: frozenset[int]) -> bool:
    return any(before[place] != after[place] for place in places)
