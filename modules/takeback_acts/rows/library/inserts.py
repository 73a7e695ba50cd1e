"""Inserts: most of what an agent does is to add rows, which needs no following of each row."""

from __future__ import annotations

from collections.abc import Sequence

from takeback_acts.rows.changes import Event
from takeback_acts.rows.tables import Catalog


def inserts(events: Sequence[Event], catalog: Catalog) -> bool:
    """Whether all of them add rows to one table, each another, with keys that have no NULL."""
    if len(events) < 2:
        return False
    table = catalog.tables.get(events[0].table)
    if table is None or table.folds:
        return False
    rows = [after for name, before, after in events if before is None and after and name == table.name]
    keys = set(table.keys_of(rows))
    return len(keys) == len(events) and not any(None in key for key in keys)
