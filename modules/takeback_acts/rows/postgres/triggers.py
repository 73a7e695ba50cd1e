"""Triggers: what capture consists of in the person's database, as SQL, and nothing that runs it.

A row that changes is written down by a trigger of its table, while `takeback.act` is set: by us, within one
transaction. For everybody else the trigger costs a look at that setting. The functions name everything in
full, so that no search path of whoever changes rows makes them do something else.

What is captured is held by settings that end with the transaction: `takeback.rows` is JSON, a row an element;
beyond a few kilobytes a temporary table takes the rest. A function that does not
know a column, because it came since, must not run: a row would be kept without it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from takeback_acts.rows.postgres.refusals import CHANGED, TRUNCATED, UNJOURNALED
from takeback_acts.rows.postgres.stamps import wider_sql
from takeback_acts.rows.postgres.tables import Guarded, PostgresCatalog, PostgresTable
from takeback_acts.rows.postgres.types import PINS

CAPTURE = "takeback_capture"
REFUSE = "takeback_refuse"
KEEP = "takeback_keep"
SPILL = "pg_temp.takeback_captured"

_MOST_HELD = 8192

ARMED = "pg_catalog.textne(pg_catalog.current_setting('takeback.act', true), '')"

# Each entry is changed once, when it is taken back, and many of them at once. With room beside it on its page
# no index has to be, which takes a seventh of the time.
JOURNAL = """
CREATE TABLE IF NOT EXISTS {schema}.takeback_journal (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    at text NOT NULL,
    kind text NOT NULL,
    grp text NOT NULL,
    point text NOT NULL,
    tool text NOT NULL,
    shapes text NOT NULL,
    changes text NOT NULL,
    undoes text,
    undone_in text,
    note text
) WITH (fillfactor = 50);
CREATE INDEX IF NOT EXISTS takeback_journal_grp ON {schema}.takeback_journal (grp, seq);
"""

COLLECT = """
SELECT pg_catalog.current_setting('takeback.rows', true), pg_catalog.current_setting('takeback.spilt', true),
    pg_catalog.current_setting('takeback.act', true),
    pg_catalog.set_config('takeback.rows', '', true), pg_catalog.set_config('takeback.spilt', '', true)
"""

# Each expression costs its making once a transaction, and PERFORM a statement each time: there are few of
# the one, and the other is only where it is rare. Sessions go on with what they made of an expression also
# when a column has got another type of the same name; with another function they do not.
_FUNCTION = """
-- {types}
DECLARE
    kept pg_catalog.text[];
    held pg_catalog.text;
BEGIN
    IF {is_wider} OR {is_unpinned} THEN
        IF {is_wider} THEN
            RAISE EXCEPTION USING ERRCODE = '{changed}', TABLE = {name},
                MESSAGE = 'takeback does not know the columns of this table any more';
        END IF;
        kept := ARRAY[{settings}];
        PERFORM {pin};
    END IF;
    IF {is_spilt} THEN
        INSERT INTO pg_temp.takeback_captured (t, o, n) VALUES ({name},
            CASE WHEN pg_catalog.textne(TG_OP, 'INSERT') THEN ARRAY[{old}] END,
            CASE WHEN pg_catalog.textne(TG_OP, 'DELETE') THEN ARRAY[{new}] END);
    ELSE
        held := pg_catalog.set_config('takeback.rows',
            pg_catalog.concat(pg_catalog.current_setting('takeback.rows', true), {element},
                CASE WHEN pg_catalog.texteq(TG_OP, 'INSERT') THEN 'null'
                    ELSE pg_catalog.textin(pg_catalog.json_out(pg_catalog.array_to_json(ARRAY[{old}]))) END,
                ',',
                CASE WHEN pg_catalog.texteq(TG_OP, 'DELETE') THEN 'null'
                    ELSE pg_catalog.textin(pg_catalog.json_out(pg_catalog.array_to_json(ARRAY[{new}]))) END,
                '],'),
            true);
        IF pg_catalog.int4gt(pg_catalog.octet_length(held), {most}) THEN
            IF pg_catalog.to_regclass('pg_temp.takeback_captured') IS NULL THEN
                CREATE TEMPORARY TABLE takeback_captured
                    (t pg_catalog.text, o pg_catalog.text[], n pg_catalog.text[],
                        at pg_catalog.int8 GENERATED ALWAYS AS IDENTITY (CACHE 1000)) ON COMMIT DROP;
                GRANT ALL ON pg_temp.takeback_captured TO PUBLIC;
            END IF;
            PERFORM pg_catalog.set_config('takeback.spilt', 'on', true);
        END IF;
    END IF;
    IF kept IS NOT NULL THEN
        PERFORM {unpin};
    END IF;
    RETURN NULL;
END
"""
_KEEP_FUNCTION = f"""
BEGIN
    RAISE EXCEPTION USING ERRCODE = '{TRUNCATED}', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
        MESSAGE = 'takeback can not take TRUNCATE back';
END
"""
_REFUSE_FUNCTION = f"""
BEGIN
    RAISE EXCEPTION USING ERRCODE = '{UNJOURNALED}', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
        MESSAGE = 'takeback can not journal this table';
END
"""


def functions(catalog: PostgresCatalog) -> Iterator[tuple[str, str]]:
    """The functions that there should be, by name, with their bodies."""
    yield KEEP, _KEEP_FUNCTION
    yield REFUSE, _REFUSE_FUNCTION
    for table in catalog.tables.values():
        assert isinstance(table, PostgresTable)
        yield function_of(table), _body(table)


def triggers(catalog: PostgresCatalog, schema: str) -> Iterator[tuple[int, str, str, str]]:
    """The triggers that there should be: the table, their name and function, and the SQL that makes them."""
    for table in catalog.tables.values():
        assert isinstance(table, PostgresTable)
        events = "AFTER INSERT OR UPDATE OR DELETE"
        yield _trigger(table.oid, table.full, CAPTURE, events, "ROW", schema, function_of(table))
        yield _trigger(table.oid, table.full, KEEP, "BEFORE TRUNCATE", "STATEMENT", schema, KEEP)
    for part in catalog.partitions:
        yield _trigger(part.oid, part.full, KEEP, "BEFORE TRUNCATE", "STATEMENT", schema, KEEP)
    for guard in catalog.guarded:
        if guard.ours:
            yield from _guards(guard, schema)


def function_of(table: PostgresTable) -> str:
    """The name of a table's function, the same after a dump is loaded again."""
    return f"{CAPTURE}_{hashlib.sha256(table.full.encode()).hexdigest()[:16]}"


def literal(text: str) -> str:
    """A text as SQL, whatever `standard_conforming_strings` says."""
    escaped = text.replace("'", "''")
    return "E'" + escaped.replace("\\", "\\\\") + "'" if "\\" in escaped else f"'{escaped}'"


def _guards(guard: Guarded, schema: str) -> Iterator[tuple[int, str, str, str]]:
    events = "BEFORE INSERT OR UPDATE OR DELETE"
    yield _trigger(guard.oid, guard.full, REFUSE, events, "ROW", schema, REFUSE)
    yield _trigger(guard.oid, guard.full, KEEP, "BEFORE TRUNCATE", "STATEMENT", schema, KEEP)


def _trigger(
    oid: int, table: str, name: str, events: str, each: str, schema: str, function: str
) -> tuple[int, str, str, str]:
    sql = (
        f"CREATE OR REPLACE TRIGGER {name} {events} ON {table} FOR EACH {each} WHEN ({ARMED})"
        f" EXECUTE FUNCTION {schema}.{function}()"
    )
    return oid, name, function, sql


def _body(table: PostgresTable) -> str:
    settings = ", ".join(f"pg_catalog.current_setting({literal(name)})" for name in PINS)
    pinned = literal("".join(PINS.values()))
    return _FUNCTION.format(
        types=" ".join(map(str, table.types)),
        is_wider=wider_sql(table),
        changed=CHANGED,
        name=literal(table.name),
        element=literal(f"[{json.dumps(table.name)},"),
        is_spilt="pg_catalog.texteq(pg_catalog.current_setting('takeback.spilt', true), 'on')",
        is_unpinned=f"pg_catalog.textne(pg_catalog.concat({settings}), {pinned})",
        settings=settings,
        pin=", ".join(_set(name, literal(value)) for name, value in PINS.items()),
        unpin=", ".join(_set(name, f"kept[{place}]") for place, name in enumerate(PINS, 1)),
        old=", ".join(text.format("OLD") for text in table.texts),
        new=", ".join(text.format("NEW") for text in table.texts),
        most=_MOST_HELD,
    )


def _set(name: str, value: str) -> str:
    return f"pg_catalog.set_config({literal(name)}, {value}, true)"
