"""Looking: the versions that rows and their columns have now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from takeback_acts.rows.connections import Connection
from takeback_acts.rows.dialect import Dialect, Link
from takeback_acts.rows.resources import ABSENT, Place, parse
from takeback_acts.rows.tables import Catalog, Table


def versions(
    connection: Connection, dialect: Dialect, link: Link, catalog: Catalog, resources: Iterable[str]
) -> dict[str, str]:
    """The version of each resource; of what has no table any more it is `absent`."""
    found: dict[str, str] = {}
    by_table: dict[str, list[tuple[str, Place]]] = {}
    for name in resources:
        place = parse(name)
        by_table.setdefault(place.table, []).append((name, place))
    for table_name, asked in by_table.items():
        table = catalog.tables.get(table_name)
        if table is None:
            found |= {name: ABSENT for name, _ in asked}
        else:
            found |= _of_table(connection, dialect, link, table, asked)
    return found


def _of_table(
    connection: Connection, dialect: Dialect, link: Link, table: Table, asked: Sequence[tuple[str, Place]]
) -> dict[str, str]:
    names = connection.names
    keys = {name: names.key(place) for name, place in asked if len(place.key) == len(table.key)}
    images = dialect.read(link, table, dict.fromkeys(keys.values()))
    return {
        name: names.version(table, images.get(keys[name]) if name in keys else None, place.column)
        for name, place in asked
    }
