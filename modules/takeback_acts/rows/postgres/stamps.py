"""Stamps: what tells that a schema is still as it was, without reading all of it."""

from __future__ import annotations

from collections.abc import Iterable

from takeback_acts.rows.dialect import Link
from takeback_acts.rows.postgres.tables import PostgresTable
from takeback_acts.rows.tables import Catalog, Table

# The newest table there is; and how many of the known ones have their trigger.
_STAMP = """
SELECT coalesce((SELECT c.oid::int8 FROM pg_catalog.pg_class c WHERE c.relkind IN ('r', 'p')
        AND c.relpersistence <> 't' AND NOT pg_catalog.starts_with(c.relname::text, 'takeback_')
        ORDER BY c.oid DESC LIMIT 1), 0)::text,
    (SELECT pg_catalog.count(*) FROM pg_catalog.pg_trigger t
        WHERE t.tgrelid = ANY({oids}) AND t.tgname = 'takeback_capture' AND t.tgenabled = 'O')::int8,
    {wider}
"""
# All that a catalog is made of, or what can't change without it.
_SHAPE = """
SELECT pg_catalog.md5(pg_catalog.concat(
    (SELECT pg_catalog.string_agg(pg_catalog.concat_ws('/', c.oid, n.nspname, c.relname, c.relowner,
            c.relhasrules, c.relrowsecurity, c.relforcerowsecurity, c.relispartition), ';' ORDER BY c.oid)
        FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'f') AND c.relpersistence <> 't' AND c.oid >= 16384
            AND NOT pg_catalog.starts_with(c.relname::text, 'takeback_')),
    (SELECT pg_catalog.string_agg(pg_catalog.concat_ws('/', a.attrelid, a.attnum, a.attname, a.atttypid,
            a.atttypmod, a.attnotnull, a.attgenerated, a.attidentity, a.attcollation, a.atthasdef,
            a.attisdropped), ';' ORDER BY a.attrelid, a.attnum)
        FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
        WHERE c.relkind IN ('r', 'p', 'f') AND c.relpersistence <> 't' AND c.oid >= 16384 AND a.attnum > 0
            AND NOT pg_catalog.starts_with(c.relname::text, 'takeback_')),
    (SELECT pg_catalog.concat_ws('/', pg_catalog.count(*), pg_catalog.max(d.oid::int8))
        FROM pg_catalog.pg_attrdef d),
    (SELECT pg_catalog.concat_ws('/', pg_catalog.count(*), pg_catalog.max(k.oid::int8))
        FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
        WHERE NOT pg_catalog.starts_with(c.relname::text, 'takeback_')),
    (SELECT pg_catalog.concat_ws('/', pg_catalog.count(*), pg_catalog.max(i.indexrelid::int8))
        FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
        WHERE c.relkind IN ('r', 'p') AND NOT pg_catalog.starts_with(c.relname::text, 'takeback_')),
    (SELECT pg_catalog.string_agg(pg_catalog.concat_ws('/', t.oid, t.tgenabled), ';' ORDER BY t.oid)
        FROM pg_catalog.pg_trigger t WHERE NOT t.tgisinternal
            AND NOT pg_catalog.starts_with(t.tgname::text, 'takeback_'))))
"""
_MOST_STAMPED = 200


def stamp_sql(tables: Iterable[Table]) -> str:
    """What tells cheaply whether a schema is still as it was: see `unchanged`."""
    looked_at = _looked_at(tables)
    wider = " OR ".join(wider_sql(table) for table in looked_at) or "false"
    listed = "{" + ",".join(str(table.oid) for table in looked_at) + "}"
    return _STAMP.format(oids=f"'{listed}'::pg_catalog.oid[]", wider=wider)


def shape(link: Link) -> str:
    """What changes with whatever a catalog is made of; it takes longer than a stamp."""
    return str(link.execute(_SHAPE)[0][0])


def unchanged(catalog: Catalog, stamp: tuple[object, ...]) -> bool:
    """Whether a stamp says that no table came, none has more columns, and that none lost its trigger."""
    return stamp == (catalog.stamp, len(_looked_at(catalog.tables.values())), False)


def wider_sql(table: PostgresTable) -> str:
    """SQL that is true when the table has got columns; the server has to look at its caches alone for it."""
    return " OR ".join(
        f"pg_catalog.has_column_privilege({table.oid}::pg_catalog.oid, {number}::pg_catalog.int2, 'SELECT')"
        " IS NOT NULL"
        for number in (table.width + 1, table.width + 2)
    )


def _looked_at(tables: Iterable[Table]) -> list[PostgresTable]:
    """The tables that are looked at each time; none of them where they are many."""
    found = [table for table in tables if isinstance(table, PostgresTable)]
    return found if len(found) <= _MOST_STAMPED else []
