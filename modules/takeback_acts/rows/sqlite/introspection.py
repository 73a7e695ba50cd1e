"""Introspection: what a SQLite database says of its tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from takeback_acts.rows.dialect import Link
from takeback_acts.rows.sqlite import expressions
from takeback_acts.rows.tables import Catalog, Column, Fold, ForeignKey, Table, Unique, nocase, rtrim

OURS = "takeback_"
# Both images of a row go into one row of the table that captures, and SQLite has 2000 columns for it.
MOST_COLUMNS = 990

_FOLDS: Mapping[str, Fold | None] = {"BINARY": None, "NOCASE": nocase, "RTRIM": rtrim}
_CHECK = re.compile(r"\bcheck\b", re.IGNORECASE)
_ON_CONFLICT = re.compile(r"\bon\s+conflict\b", re.IGNORECASE)
_REFERENCES = (
    'SELECT id, "table", "from", "to", on_delete, on_update FROM pragma_foreign_key_list(?) ORDER BY id, seq'
)
_KINDS = {
    "view": "it is a view; what is written through it is journaled in its tables",
    "virtual": "it is a virtual table",
    "shadow": "it belongs to a virtual table, which keeps it",
}


@dataclass(frozen=True)
class Index:
    """An index that keeps rows apart, with the collation of each of its columns; or with its expressions."""

    name: str
    columns: tuple[str, ...]
    collations: tuple[str, ...]
    of_key: bool
    expressions: tuple[str, ...] = ()
    partial: bool = False


@dataclass(frozen=True)
class SqliteTable(Table):
    """A table with what only SQLite has.

    `indexes` by collation; `resolves` where a constraint says itself what a conflict does; `triggered` where
    the person has triggers, on any table.
    """

    indexes: tuple[Index, ...] = ()
    resolves: bool = False
    triggered: bool = True
    texts: dict[Any, str] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class SqliteCatalog(Catalog):
    """A catalog that tells whether there are triggers of the person's anywhere, on views too."""

    triggered: bool = False


def catalog(link: Link) -> SqliteCatalog:
    """The tables of the main database, as they are now."""
    version = stamp(link)
    listed = link.execute("SELECT name, type FROM pragma_table_list WHERE schema = 'main'")
    made = dict(link.execute("SELECT name, coalesce(sql, '') FROM main.sqlite_schema WHERE type = 'table'"))
    names = {name: kind for name, kind in listed if not name.lower().startswith(("sqlite_", OURS)) and name}
    triggers = _triggers(link)
    tables: dict[str, SqliteTable] = {}
    refused: dict[str, str] = {}
    canon = {name.lower(): name for name in names}
    for name in sorted(names):
        reason = _KINDS.get(names[name], "")
        table = (
            None if reason else _table(link, name, made.get(name, ""), triggers.get(name.lower(), ()), canon)
        )
        reason = reason or _reason(table)
        if reason or table is None:
            refused[name] = reason
        else:
            tables[name] = table
    watched = tuple(name for name in refused if names[name] == "table")
    return SqliteCatalog(_complete(tables, bool(triggers)), refused, version, watched, bool(triggers))


def stamp(link: Link) -> str:
    """A number that changes with the schema."""
    return str(link.execute("PRAGMA main.schema_version")[0][0])


def _triggers(link: Link) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for table, name in link.execute(
        "SELECT lower(tbl_name), name FROM main.sqlite_schema WHERE type = 'trigger' ORDER BY name"
    ):
        found[table] = (*found.get(table, ()), name)
    return found


def _table(
    link: Link, name: str, sql: str, triggers: tuple[str, ...], canon: Mapping[str, str]
) -> SqliteTable:
    indexes = _indexes(link, name)
    rows = link.execute(
        'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?)', (name,)
    )
    key = tuple(row[0] for row in sorted((row for row in rows if row[4]), key=lambda row: row[4]))
    collations = {
        column: collation
        for index in indexes
        if index.of_key
        for column, collation in zip(index.columns, index.collations, strict=True)
    }
    return SqliteTable(
        name=name,
        columns=tuple(_column(row, collations.get(row[0], "BINARY")) for row in rows),
        key=key,
        foreign_keys=_foreign_keys(link, name, canon),
        uniques=tuple(_unique(index) for index in indexes if not index.of_key),
        triggers=triggers,
        indexes=indexes,
        resolves=bool(_ON_CONFLICT.search(sql)),
        loose=any(_is_loose(row[1]) for row in rows),
        checks=bool(_CHECK.search(sql)),
    )


def _column(row: tuple[Any, ...], collation: str) -> Column:
    name, kind, not_null, default, _, hidden = row
    return Column(
        name=name,
        type=kind,
        nullable=not not_null,
        generated=hidden in (2, 3),
        collation="" if collation == "BINARY" else collation,
        fold=_FOLDS.get(collation),
        default=default,
    )


def _is_loose(declared: str) -> bool:
    """Whether a column keeps 1 and 1.0 as they come. Where it does not, equal values are of one type."""
    declared = declared.upper()
    if "INT" in declared or any(word in declared for word in ("CHAR", "CLOB", "TEXT")):
        return False
    return not declared or "BLOB" in declared or declared == "ANY"


def _indexes(link: Link, table: str) -> tuple[Index, ...]:
    found = link.execute(
        'SELECT name, origin, partial FROM pragma_index_list(?) WHERE "unique"'
        " ORDER BY origin <> 'pk', seq DESC",
        (table,),
    )
    return tuple(
        replace(_index(link, name, origin == "pk"), partial=bool(part)) for name, origin, part in found
    )


def _unique(index: Index) -> Unique:
    return Unique(index.name, index.columns, partial=index.partial)


def _index(link: Link, name: str, of_key: bool) -> Index:
    parts = link.execute("SELECT cid, name, upper(coll) FROM pragma_index_xinfo(?) WHERE key", (name,))
    if any(cid < 0 for cid, _, _ in parts):
        ((sql,),) = link.execute("SELECT sql FROM main.sqlite_schema WHERE name = ?", (name,))
        return Index(name, (), (), of_key, expressions.parts(sql))
    return Index(name, tuple(part[1] for part in parts), tuple(part[2] for part in parts), of_key)


def _foreign_keys(link: Link, table: str, canon: Mapping[str, str]) -> tuple[ForeignKey, ...]:
    parts: dict[int, list[tuple[Any, ...]]] = {}
    for row in link.execute(_REFERENCES, (table,)):
        parts.setdefault(row[0], []).append(row)
    made = []
    for rows in parts.values():
        columns = tuple(row[2] for row in rows)
        to = canon.get(rows[0][1].lower(), rows[0][1])
        named = tuple(row[3] for row in rows)
        to_columns = () if None in named else named
        name = f"{table}({', '.join(columns)}) references {to}"
        made.append(ForeignKey(name, columns, to, to_columns, rows[0][4], rows[0][5], deferrable=True))
    return tuple(made)


def _reason(table: SqliteTable | None) -> str:
    if table is None or not table.key:
        return "it has no primary key"
    if len(table.columns) > MOST_COLUMNS:
        return f"it has more than {MOST_COLUMNS} columns"
    for index in table.indexes:
        for collation in index.collations if index.of_key else ():
            if collation not in _FOLDS:
                return f"its key compares by {collation}, a collation of its own program"
    return ""


def _complete(tables: dict[str, SqliteTable], triggered: bool) -> dict[str, Table]:
    """Foreign keys with the columns they mean, by the names that the other table has for them."""
    return {
        name: replace(
            table,
            foreign_keys=tuple(_aimed(key, tables.get(key.to)) for key in table.foreign_keys),
            triggered=triggered,
        )
        for name, table in tables.items()
    }


def _aimed(key: ForeignKey, to: Table | None) -> ForeignKey:
    if to is None:
        return key
    names = {column.name.lower(): column.name for column in to.columns}
    meant = tuple(names.get(column.lower(), column) for column in key.to_columns)
    return replace(key, to_columns=meant or to.key)
