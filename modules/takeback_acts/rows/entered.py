"""What an entry of the journal touched, in the names that the log had for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from takeback_acts.rows import codec, summaries
from takeback_acts.rows.entries import Stored
from takeback_acts.rows.models import Happening, Touched
from takeback_acts.rows.resources import Names, Triple
from takeback_acts.rows.tables import Catalog, Column, Table


def touched(stored: Stored, names: Names, catalog: Catalog) -> list[Triple]:
    """Each resource of an entry, with its versions before and after, whatever its tables look like by now."""
    return names.touched(_as_it_was(stored, catalog), stored.changes)


def happening(database: str, stored: Stored, names: Names, catalog: Catalog) -> Happening:
    """What an entry says that its act did."""
    then = _as_it_was(stored, catalog)
    found = [Touched(resource=name, before=a, after=b) for name, a, b in names.touched(then, stored.changes)]
    first = str((stored.note or {}).get("table", ""))
    summary = summaries.of(database, stored.changes, then, first=first, undone=stored.kind == "undo")
    return Happening(touched=found, summary=summary)


def _as_it_was(stored: Stored, catalog: Catalog) -> Catalog:
    """The tables of an entry, with the columns that they had."""
    with codec.reading():
        shapes: dict[str, dict[str, Any]] = json.loads(stored.shapes)
        tables = {name: _table(name, shape, catalog.tables.get(name)) for name, shape in shapes.items()}
    return Catalog(tables, {})


def _table(name: str, shape: dict[str, Any], now: Table | None) -> Table:
    if now is not None and now.fingerprint == shape["f"]:
        return now
    columns = [_column(one, kind, shape, now) for one, kind in zip(shape["c"], shape["t"], strict=True)]
    return Table(name, tuple(columns), tuple(shape["k"]), fingerprint=shape["f"])


def _column(name: str, kind: str, shape: dict[str, Any], now: Table | None) -> Column:
    made = Column(name, kind, nullable=True, generated=name in shape["g"])
    if now is None or not now.has(name):
        return made
    # By what a key's values are compared is no part of its shape.
    return replace(made, fold=now.columns[now.index(name)].fold)


def chosen(all_of_it: Sequence[Triple], only: Sequence[str] | None) -> list[str]:
    """The resources of an entry that are to be given back."""
    wanted = None if only is None else set(only)
    return [name for name, _, _ in all_of_it if wanted is None or name in wanted]
