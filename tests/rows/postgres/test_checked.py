"""A preview says what taking back comes to, also where the server refuses more than keys tell."""

import psycopg
import pytest

from tests.rows.engines import PostgresEngine

SCHEMA = (
    "CREATE DOMAIN share AS integer",
    "CREATE TABLE skill (id integer PRIMARY KEY, title text NOT NULL, parts share, tags text[])",
    "INSERT INTO skill VALUES (1, 'Python', 5, '{a}'), (2, 'SQL', 4, '{b}')",
    "CREATE TABLE plain (id integer PRIMARY KEY, title text NOT NULL, level integer, tags text[])",
    "INSERT INTO plain VALUES (1, 'Python', 0, '{a}'), (2, 'SQL', 4, '{b}')",
)
# What comes after the act, and keeps the row from being as it was.
SINCE = {
    "a check": "ALTER TABLE plain ADD CONSTRAINT level_is_more CHECK (level > 0) NOT VALID",
    "an expression": "CREATE INDEX plain_share ON plain ((100 / level))",
    "a predicate": "CREATE INDEX plain_some ON plain (id) WHERE 100 / level > 1",
    "an exclusion": "ALTER TABLE plain ADD CONSTRAINT alone EXCLUDE USING btree (level WITH =)",
    "a domain": "ALTER DOMAIN share ADD CONSTRAINT few CHECK (VALUE < 5) NOT VALID",
}


@pytest.fixture
def engine(postgres):
    made = PostgresEngine(postgres)
    made.schema(*SCHEMA)
    yield made
    made.close()


@pytest.mark.parametrize("what", list(SINCE))
def test_what_the_server_refuses_since_is_foreseen(engine, what):
    acts = [
        engine.act("UPDATE plain SET level = 7 WHERE id = 1"),
        engine.act("UPDATE skill SET parts = 3 WHERE id = 1"),
    ]
    if what == "an exclusion":
        engine.stranger("UPDATE plain SET level = 0 WHERE id = 2")
    engine.schema(SINCE[what])
    act = acts[what == "a domain"]
    assert not engine.preview(act).clean
    assert not engine.take_back(act).clean


def test_a_text_too_long_for_an_index_made_since_is_foreseen(engine):
    # Of chance, so that it is no shorter when it is compressed.
    long = "(SELECT string_agg(md5(i::text), '') FROM generate_series(1, 400) i)"
    engine.stranger(f"UPDATE plain SET title = {long} WHERE id = 1")
    act = engine.act("UPDATE plain SET title = 'short' WHERE id = 1")
    engine.schema("CREATE INDEX plain_title ON plain (title)")
    for way in (engine.preview, engine.take_back):
        with pytest.raises(psycopg.errors.ProgramLimitExceeded):
            way(act)


@pytest.mark.parametrize("table", ["plain", "skill"])
def test_a_table_without_such_is_known_to_take_everything(engine, table):
    checks = engine.ledger.catalog.tables[table].checks
    assert checks is (table == "skill")


def test_a_preview_where_nothing_can_refuse_does_nothing_at_all(engine):
    act = engine.act("UPDATE plain SET level = 7 WHERE id = 1", "DELETE FROM plain WHERE id = 2")
    before = engine.stranger("SELECT xmin::text FROM plain")
    seen = engine.preview(act)
    assert seen.clean
    assert {change.table for change in seen.changes} == {"plain"}
    assert engine.stranger("SELECT xmin::text FROM plain") == before
    assert set(engine.take_back(act).changes) == set(seen.changes)
