"""Ordering: parents before children, as foreign keys say."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from takeback_acts.rows.tables import Catalog, Image, Table

Node = TypeVar("Node", bound=Hashable)


def tables(catalog: Catalog, names: Iterable[str]) -> list[str]:
    """The tables, those that others refer to first; within a cycle as they come."""
    wanted = list(dict.fromkeys(names))
    among = set(wanted)
    parents = {
        name: [key.to for key in catalog.tables[name].foreign_keys if key.to in among and key.to != name]
        for name in wanted
    }
    return _first(wanted, parents)


def images(table: Table, rows: Sequence[Image]) -> list[Image]:
    """Rows of a table that refers to itself, those that others refer to first."""
    own = [key for key in table.foreign_keys if key.to == table.name]
    if not own or len(rows) < 2:
        return list(rows)
    parents: dict[int, list[int]] = {}
    for key in own:
        there = [table.index(column) for column in key.to_columns]
        here = [table.index(column) for column in key.columns]
        by_value = {tuple(row[place] for place in there): number for number, row in enumerate(rows)}
        for number, row in enumerate(rows):
            parent = by_value.get(tuple(row[place] for place in here))
            if parent is not None and parent != number:
                parents.setdefault(number, []).append(parent)
    return [rows[number] for number in _first(range(len(rows)), parents)]


def _first(nodes: Iterable[Node], parents: Mapping[Node, Sequence[Node]]) -> list[Node]:
    """The nodes, each after its parents. A chain may be longer than Python calls deep."""
    made: dict[Node, None] = {}
    seen: set[Node] = set()
    for node in nodes:
        way = [node]
        while way:
            here = way[-1]
            seen.add(here)
            ahead = next((each for each in parents.get(here, ()) if each not in seen), None)
            if ahead is None:
                made[way.pop()] = None
            else:
                way.append(ahead)
    return list(made)
