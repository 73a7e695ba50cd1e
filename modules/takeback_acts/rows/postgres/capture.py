"""Capture: puts the triggers into a database, takes them away, and reads what they wrote down."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from takeback.errors import RefusedError
from takeback_acts.rows.changes import Event
from takeback_acts.rows.dialect import Link
from takeback_acts.rows.postgres import triggers
from takeback_acts.rows.postgres.link import PostgresLink
from takeback_acts.rows.postgres.tables import PostgresCatalog
from takeback_acts.rows.postgres.types import quoted

_MARK = "\n-- of takeback\n"

_OUR_FUNCTIONS = """
SELECT p.oid::int8, n.nspname::text, p.proname::text, p.prosrc
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE pg_catalog.starts_with(p.proname::text, 'takeback_')
    AND pg_catalog.strpos(p.prosrc, '-- of takeback') > 0 AND p.prorettype = 'pg_catalog.trigger'::regtype
"""
_OUR_TRIGGERS = """
SELECT t.tgrelid::int8, t.tgname::text, t.tgfoid::int8, t.tgenabled::text, n.nspname::text, c.relname::text
FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE t.tgparentid = 0 AND pg_catalog.starts_with(t.tgname::text, 'takeback_')
"""
_JOURNALS = """
SELECT n.nspname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = 'takeback_journal' AND c.relkind = 'r' AND c.relpersistence <> 't'
    AND n.nspname = ANY(pg_catalog.current_schemas(false)) ORDER BY
    pg_catalog.array_position(pg_catalog.current_schemas(false), n.nspname)
"""
_SCHEMA = """
SELECT s::text FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) WITH ORDINALITY u(s, n)
WHERE pg_catalog.has_schema_privilege(s, 'CREATE') ORDER BY n LIMIT 1
"""
# Two that install at once would meet in the same rows of the catalog.
_ALONE = "SELECT pg_catalog.pg_advisory_xact_lock(8319403528785387365);"

_ARM = """
SELECT pg_catalog.current_setting('takeback.spilt', true), pg_catalog.set_config('takeback.act', %s, true),
    pg_catalog.set_config('takeback.rows', '', true), pg_catalog.set_config('takeback.spilt', '', true)
"""
_UNSEEN = """
SELECT o::int8 FROM pg_catalog.unnest(%s::pg_catalog.oid[]) o
WHERE pg_catalog.pg_stat_get_xact_tuples_inserted(o) + pg_catalog.pg_stat_get_xact_tuples_updated(o)
    + pg_catalog.pg_stat_get_xact_tuples_deleted(o) > 0
"""


def install(link: Link, catalog: PostgresCatalog) -> None:
    """Makes what is missing, in one transaction; what is there and right is not touched, nor locked.

    RefusedError("rows.privilege") when there is no schema to make it in.
    """
    journals = link.execute(_JOURNALS)
    schema = journals[0][0] if journals else _schema(link)
    made = [] if journals else [triggers.JOURNAL.format(schema=quoted(schema))]
    there = {(row[1], row[2]): (row[0], row[3]) for row in link.execute(_OUR_FUNCTIONS)}
    standing = {(row[0], row[1]): (row[2], row[3]) for row in link.execute(_OUR_TRIGGERS)}
    right: dict[str, int] = {}
    for name, body in triggers.functions(catalog):
        oid, source = there.get((schema, name), (0, ""))
        if source != _marked(body):
            made.append(_function(quoted(schema), name, body))
        right[name] = oid
    for oid, name, function, sql in triggers.triggers(catalog, quoted(schema)):
        if standing.pop((oid, name), None) != (right[function], "O"):
            made.append(f"{sql};")
    made += _stale(standing, link) if standing else []
    if made:
        link.execute("\n".join([_ALONE, *made]))


def remove(link: Link) -> None:
    """Takes away the triggers, their functions and the journal, in one transaction."""
    ours = {row[0]: row for row in link.execute(_OUR_FUNCTIONS)}
    gone = [
        f"DROP TRIGGER {quoted(row[1])} ON {quoted(row[4])}.{quoted(row[5])};"
        for row in link.execute(_OUR_TRIGGERS)
        if row[2] in ours
    ]
    gone += [f"DROP FUNCTION {quoted(row[1])}.{quoted(row[2])}();" for row in ours.values()]
    gone += [f"DROP TABLE {quoted(row[0])}.takeback_journal;" for row in link.execute(_JOURNALS)[:1]]
    if gone:
        link.execute("\n".join([_ALONE, *gone]))


def arm(link: Link, act_id: str) -> None:
    """From now on, in this transaction, row changes are captured."""
    told = _told(link)
    if isinstance(link, PostgresLink):
        link.captured, link.told = None, False
    if (link.execute(_ARM, (act_id,))[0][0] == "on") or (told is not None and told[1] == "on"):
        link.execute(f"TRUNCATE {triggers.SPILL}")


def collect(link: Link, catalog: PostgresCatalog) -> list[Event]:
    """What was captured, as the triggers saw it.

    RefusedError("rows.unjournaled") when a table changed that no trigger of ours is on, "rows.disarmed".
    """
    if catalog.late:
        late = ", ".join(catalog.late)
        link.execute(f"SET CONSTRAINTS {late} IMMEDIATE; SET CONSTRAINTS {late} DEFERRED")
    found = [row for row in (_told(link), _asked(link)) if row is not None]
    if not found[-1][2]:
        raise RefusedError(
            "rows.disarmed", "A statement switched off what records changes; nothing of it stays."
        )
    _require_seen(link, catalog)
    events = []
    for held, *_ in found:
        events += [Event(*_images(row)) for row in json.loads(f"[{held[:-1]}]")] if held else []
    if any(spilt == "on" for _, spilt, *_ in found):
        rows = link.execute(f"SELECT t, o, n FROM {triggers.SPILL} ORDER BY at")
        events += [Event(name, _image(old), _image(new)) for name, old, new in rows]
        link.execute(f"TRUNCATE {triggers.SPILL}")
    if isinstance(link, PostgresLink):
        link.captured = None
    return events


def _told(link: Link) -> tuple[Any, ...] | None:
    """What came along with the first statement of a transaction."""
    return link.captured if isinstance(link, PostgresLink) else None


def _asked(link: Link) -> tuple[Any, ...] | None:
    """What was captured since; None when nothing can have been."""
    if isinstance(link, PostgresLink) and link.told and link.captured is not None:
        return None
    return link.execute(triggers.COLLECT)[0]


def _require_seen(link: Link, catalog: PostgresCatalog) -> None:
    beyond = {guard.oid: guard.name for guard in catalog.guarded if not guard.ours}
    if not beyond:
        return
    for (oid,) in link.execute(_UNSEEN, ("{" + ",".join(map(str, beyond)) + "}",)):
        name = beyond[oid]
        raise RefusedError("rows.unjournaled", f"{name} can't be journaled: {catalog.refused[name]}.")


def _images(row: list[Any]) -> tuple[Any, Any, Any]:
    return row[0], _image(row[1]), _image(row[2])


def _image(values: Iterable[str | None] | None) -> tuple[str | None, ...] | None:
    return None if values is None else tuple(values)


def _schema(link: Link) -> str:
    found = link.execute(_SCHEMA)
    if not found:
        raise RefusedError(
            "rows.privilege",
            "The database's user may not make a table in any schema of its search path.",
            "Grant CREATE on the schema public, where the journal and its functions go.",
        )
    return str(found[0][0])


def _marked(body: str) -> str:
    return _MARK + body


def _function(schema: str, name: str, body: str) -> str:
    source = _marked(body)
    tag = "$t" + hashlib.sha256(source.encode()).hexdigest()[:16] + "$"
    head = f"CREATE OR REPLACE FUNCTION {schema}.{name}() RETURNS trigger LANGUAGE plpgsql"
    return f"{head} AS {tag}{source}{tag};"


def _stale(standing: dict[tuple[int, str], Any], link: Link) -> list[str]:
    """Triggers of ours on tables that have another role in the catalog now than they had."""
    ours = {row[0] for row in link.execute(_OUR_FUNCTIONS)}
    return [
        f"DROP TRIGGER {quoted(row[1])} ON {quoted(row[4])}.{quoted(row[5])};"
        for row in link.execute(_OUR_TRIGGERS)
        if (row[0], row[1]) in standing and row[2] in ours
    ]
