"""Summaries: what changed, in a line for the log, with names of tables and columns and no value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from takeback_acts.rows.changes import Change, changed
from takeback_acts.rows.tables import Catalog

_LONGEST = 900


def of(
    database: str, changes: Sequence[Change], catalog: Catalog, *, first: str = "", undone: bool = False
) -> str:
    """Such as "Deleted 3 rows of skill in main and 5 of note"; the table `first` comes first."""
    verbs = ("Removed again", "Put back", "Gave back") if undone else ("Added", "Deleted", "Updated")
    counts = Counter((_kind(change), change.table) for change in changes)
    parts: list[str] = []
    last = -1
    for (kind, table), count in sorted(counts.items(), key=lambda one: one[0][1] != first):
        words = f"{count} of {table:.200}"
        if not parts:
            rows = "1 row" if count == 1 else f"{count} rows"
            words = f"{verbs[kind]} {rows} of {table:.200} in {database}"
        elif kind != last:
            words = f"{verbs[kind].lower()} {words}"
        parts.append(words + _columns(changes, catalog, table, kind))
        last = kind
    text = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + "".join(parts[-1:])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def counts(changes: Sequence[Change]) -> dict[str, int]:
    """How many rows of each table changed."""
    return dict(Counter(change.table for change in changes))


def _kind(change: Change) -> int:
    """0 an insert, 1 a delete, 2 an update."""
    return 0 if change.before is None else 1 if change.after is None else 2


def _columns(changes: Sequence[Change], catalog: Catalog, table: str, kind: int) -> str:
    """The columns that an update set, where they are few enough to be told."""
    if kind != 2:
        return ""
    found: dict[str, None] = {}
    for change in changes:
        if change.table == table and _kind(change) == kind:
            found |= dict.fromkeys(changed(catalog.tables[table], change))
            if len(found) > 6:
                return ""
    return f" ({', '.join(found)})"
