"""Side effects in the database, cases 27 to 33: triggers, columns and views that follow, and writes by any
means."""

import pytest

from takeback.errors import RefusedError, TakebackError
from takeback_acts.rows.rules import Rules

NOTE = "CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT, updated INTEGER)"
CLOCK = "CREATE TABLE clock (id INTEGER PRIMARY KEY, n INTEGER)"


def trigger(engine, name, when, table, sql, *, row="NEW"):
    """A trigger after each row on either engine; on PostgreSQL with a function of its name."""
    if engine.name == "sqlite":
        engine.schema(f"CREATE TRIGGER {name} AFTER {when} ON {table} BEGIN {sql}; END")
        return
    engine.schema(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {sql}; RETURN NULL; END $$",
        f"CREATE TRIGGER {name} AFTER {when} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()",
    )


def stamped(engine, *, insists):
    """A table whose trigger sets a time: always, or only where the statement itself has not."""
    engine.schema(NOTE, CLOCK, "INSERT INTO clock VALUES (1, 5000)", "INSERT INTO note VALUES (1, 'a', 100)")
    if engine.name == "postgresql":
        condition = "true" if insists else "NEW.updated IS NOT DISTINCT FROM OLD.updated"
        engine.schema(
            "CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF {condition} THEN NEW.updated := (SELECT n FROM clock); END IF; RETURN NEW; END $$",
            "CREATE TRIGGER touch BEFORE UPDATE ON note FOR EACH ROW EXECUTE FUNCTION touch()",
        )
    else:
        condition = "NEW.updated < 1000" if insists else "NEW.updated IS OLD.updated"
        engine.schema(
            f"CREATE TRIGGER touch AFTER UPDATE ON note WHEN {condition}"
            " BEGIN UPDATE note SET updated = (SELECT n FROM clock) WHERE id = NEW.id; END"
        )


def test_27_a_time_that_a_trigger_sets_is_as_it_was(engine):
    stamped(engine, insists=False)
    before = engine.dump()
    act = engine.act("UPDATE note SET body = 'b'")
    assert engine.stranger("SELECT * FROM note") == [(1, "b", 5000)]
    after = engine.dump()
    assert engine.take_back(act).clean
    assert engine.dump() == before
    assert engine.take_back(engine.undone[-1]).clean
    assert engine.dump() == after


def test_27_a_time_that_a_trigger_insists_on_is_told_as_kept(engine):
    stamped(engine, insists=True)
    act = engine.act("UPDATE note SET body = 'b'")
    engine.stranger("UPDATE clock SET n = 6000")
    for taken in (engine.preview(act), engine.take_back(act)):
        assert taken.clean
        told = [(each.column, each.action, each.reason) for each in taken.effects if each.reason]
        assert told == [("updated", "merge", "a trigger keeps it")]
    assert engine.stranger("SELECT * FROM note") == [(1, "a", 6000)]


def test_27_a_time_that_is_declared_derived_is_nobodys_conflict(engine):
    stamped(engine, insists=True)
    engine.rules = Rules(derived={"note": frozenset({"updated"})})
    act = engine.act("UPDATE note SET body = 'b'")
    engine.stranger("UPDATE clock SET n = 6000")
    engine.stranger("UPDATE note SET updated = 2000")
    taken = engine.take_back(act)
    assert taken.clean
    assert {each.column for each in taken.effects} == {"body"}
    assert engine.stranger("SELECT body FROM note") == [("a",)]


def logged(engine, log):
    engine.schema(NOTE, log, "INSERT INTO note VALUES (1, 'a', 1), (2, 'b', 1)")
    trigger(engine, "logs", "UPDATE", "note", "INSERT INTO log (what) VALUES (NEW.body)")


COUNTED = {
    "sqlite": "CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT)",
    "postgresql": "CREATE TABLE log (id serial PRIMARY KEY, what TEXT)",
}


def test_28_an_audit_that_is_journaled_loses_the_acts_own_lines_and_gains_none(engine):
    logged(engine, COUNTED[engine.name])
    act = engine.act("UPDATE note SET body = 'x' WHERE id = 1")
    engine.stranger("UPDATE note SET body = 'theirs' WHERE id = 2")
    assert engine.stranger("SELECT what FROM log ORDER BY id") == [("x",), ("theirs",)]
    assert engine.take_back(act).clean
    assert engine.stranger("SELECT what FROM log") == [("theirs",)]


def test_28_an_audit_outside_keeps_all_lines_and_says_of_the_undo_as_well(engine):
    engine.rules = Rules(outside=frozenset({"log"}))
    if engine.name == "postgresql":
        engine.dialect = type(engine.dialect)(frozenset({"log"}))
    logged(engine, "CREATE TABLE log (what TEXT)")
    act = engine.act("UPDATE note SET body = 'x' WHERE id = 1")
    assert [each.table for each in engine.written.changes] == ["note"]
    engine.stranger("UPDATE note SET body = 'theirs' WHERE id = 2")
    assert engine.take_back(act).clean
    assert engine.stranger("SELECT what FROM log") == [("x",), ("theirs",), ("a",)]


def test_28_an_audit_that_nobody_can_take_back_is_refused_by_name(engine):
    logged(engine, "CREATE TABLE log (what TEXT)")
    with pytest.raises(RefusedError, match="log") as caught:
        engine.act("UPDATE note SET body = 'x' WHERE id = 1")
    assert caught.value.code == "rows.unjournaled"
    assert engine.stranger("SELECT body FROM note WHERE id = 1") == [("a",)]


def test_29_a_third_table_that_triggers_keep_is_part_of_the_step(engine):
    engine.schema(
        "CREATE TABLE list (id INTEGER PRIMARY KEY, n INTEGER)",
        "CREATE TABLE item (id INTEGER PRIMARY KEY, list INTEGER)",
        "INSERT INTO list VALUES (1, 0), (2, 0)",
    )
    for name, when, sign, row in (("more", "INSERT", "+", "NEW"), ("less", "DELETE", "-", "OLD")):
        trigger(engine, name, when, "item", f"UPDATE list SET n = n {sign} 1 WHERE id = {row}.list")
    engine.stranger("INSERT INTO item VALUES (1, 1)")
    before = engine.dump()
    act = engine.act("INSERT INTO item VALUES (2, 1), (3, 2)", "DELETE FROM item WHERE id = 1")
    assert {each.table for each in engine.written.changes} == {"item", "list"}
    after = engine.dump()
    assert engine.take_back(act).clean
    assert engine.dump() == before
    assert engine.take_back(engine.undone[-1]).clean
    assert engine.dump() == after


def test_29_a_total_that_others_moved_on_since_is_a_conflict_or_a_counter(engine):
    engine.schema(
        "CREATE TABLE list (id INTEGER PRIMARY KEY, n INTEGER)",
        "CREATE TABLE item (id INTEGER PRIMARY KEY, list INTEGER)",
        "INSERT INTO list VALUES (1, 0)",
    )
    trigger(engine, "more", "INSERT", "item", "UPDATE list SET n = n + 1 WHERE id = NEW.list")
    trigger(engine, "less", "DELETE", "item", "UPDATE list SET n = n - 1 WHERE id = OLD.list")
    act = engine.act("INSERT INTO item VALUES (2, 1)")
    engine.stranger("INSERT INTO item VALUES (3, 1)")
    assert [each.table for each in engine.conflicts(engine.take_back(act))] == ["list"]
    engine.rules = Rules(deltas={"list": frozenset({"n"})})
    assert engine.take_back(act).clean
    assert engine.stranger("SELECT n FROM list") == [(1,)]
    assert engine.stranger("SELECT id FROM item") == [(3,)]


def test_30_generated_columns_are_never_written_and_equal_afterwards(engine):
    engine.schema(
        "CREATE TABLE sum (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER,"
        " ab INTEGER GENERATED ALWAYS AS (a + b) STORED, twice INTEGER GENERATED ALWAYS AS (a * 2) VIRTUAL)",
        "INSERT INTO sum (id, a, b) VALUES (1, 1, 2), (2, 3, 4)",
    )
    rows = engine.stranger("SELECT * FROM sum ORDER BY id")
    acts = [
        engine.act("UPDATE sum SET a = a + 10"),
        engine.act("DELETE FROM sum WHERE id = 1"),
        engine.act("INSERT INTO sum (id, a, b) VALUES (3, 5, 6)"),
    ]
    taken = engine.take_back(*acts)
    assert taken.clean
    assert {each.column for each in taken.effects} == {"", "a"}
    assert engine.stranger("SELECT * FROM sum ORDER BY id") == rows


def test_31_a_materialised_view_is_not_journaled_and_right_after_its_refresh(postgresql):
    postgresql.schema(NOTE, "INSERT INTO note VALUES (1, 'a', 1)")
    postgresql.schema("CREATE MATERIALIZED VIEW bodies AS SELECT body FROM note")
    act = postgresql.act("UPDATE note SET body = 'b'")
    postgresql.schema("REFRESH MATERIALIZED VIEW bodies")
    assert "bodies" not in postgresql.ledger.refresh(postgresql.link).tables
    assert postgresql.take_back(act).clean
    postgresql.schema("REFRESH MATERIALIZED VIEW bodies")
    assert postgresql.stranger("SELECT * FROM bodies") == [("a",)]


def test_31_an_index_of_full_text_is_rebuilt_by_its_triggers_and_not_journaled(sqlite):
    sqlite.schema(
        NOTE,
        "CREATE VIRTUAL TABLE words USING fts5(body, content='note', content_rowid='id')",
        "CREATE TRIGGER w_i AFTER INSERT ON note BEGIN"
        " INSERT INTO words (rowid, body) VALUES (NEW.id, NEW.body); END",
        "CREATE TRIGGER w_d AFTER DELETE ON note BEGIN"
        " INSERT INTO words (words, rowid, body) VALUES ('delete', OLD.id, OLD.body); END",
        "INSERT INTO note VALUES (1, 'alpha', 0)",
    )
    act = sqlite.act("DELETE FROM note WHERE id = 1", "INSERT INTO note VALUES (2, 'beta', 0)")
    assert {each.table for each in sqlite.written.changes} == {"note"}
    assert sqlite.take_back(act).clean
    assert sqlite.stranger("SELECT rowid FROM words WHERE words MATCH 'alpha OR beta'") == [(1,)]
    sqlite.stranger("INSERT INTO words (words) VALUES ('integrity-check')")


BULK = [
    "DELETE FROM note",
    "UPDATE note SET body = body || '!', updated = id",
    "INSERT INTO note SELECT id + 100, body, updated FROM note",
    "INSERT INTO note VALUES (1, 'up', 2), (9, 'in', 3) ON CONFLICT (id) DO UPDATE SET body = excluded.body",
    "INSERT INTO note VALUES (1, 'no', 2), (9, 'in', 3) ON CONFLICT DO NOTHING",
    "WITH few AS (SELECT id FROM note WHERE id < 3) DELETE FROM note WHERE id IN (SELECT id FROM few)",
    "UPDATE note SET body = o.body FROM note o WHERE o.id = note.id + 1",
]
ONLY_POSTGRESQL = [
    "WITH gone AS (DELETE FROM note WHERE id = 1 RETURNING *)"
    " INSERT INTO note SELECT id + 50, body, 0 FROM gone",
    "MERGE INTO note n USING (VALUES (1), (7)) v(i) ON n.id = v.i WHEN MATCHED THEN DELETE"
    " WHEN NOT MATCHED THEN INSERT VALUES (v.i, 'm', 0)",
    "DO $$ BEGIN FOR i IN 1..3 LOOP UPDATE note SET updated = updated + i; END LOOP; END $$",
]


@pytest.mark.parametrize("sql", BULK)
def test_32_whatever_way_rows_are_written_it_is_captured(engine, sql):
    engine.schema(NOTE, "INSERT INTO note VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 1)")
    _there_and_back(engine, sql)


@pytest.mark.parametrize("sql", ONLY_POSTGRESQL)
def test_32_what_only_postgresql_has_is_captured(postgresql, sql):
    postgresql.schema(NOTE, "INSERT INTO note VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 1)")
    _there_and_back(postgresql, sql)


def _there_and_back(engine, sql):
    before = engine.dump()
    act = engine.act(sql)
    after = engine.dump()
    assert after != before
    assert engine.take_back(act).clean
    assert engine.dump() == before
    assert engine.take_back(engine.undone[-1]).clean
    assert engine.dump() == after


def test_32_copy_is_captured(postgresql):
    postgresql.schema(NOTE)

    def body(link):
        with link.connection.cursor().copy(b"COPY note FROM STDIN") as copy:
            copy.write_row((1, "copied", 2))
            copy.write_row((2, "as well", 3))

    act = postgresql.act_of(body)
    assert len(postgresql.written.changes) == 2
    assert postgresql.take_back(act).clean
    assert postgresql.stranger("SELECT * FROM note") == []


@pytest.mark.parametrize("sql", ["TRUNCATE note", "TRUNCATE note CASCADE"])
def test_32_what_says_of_no_rows_is_refused_and_not_done(postgresql, sql):
    postgresql.schema(NOTE, "INSERT INTO note VALUES (1, 'a', 1)")
    with pytest.raises(Exception, match=r"takeback|rows\.truncate") as caught:
        postgresql.act(sql)
    told = caught.value
    refused = told if isinstance(told, TakebackError) else postgresql.dialect.refusal(told)
    assert refused is not None
    assert refused.code == "rows.truncate"
    assert postgresql.stranger("SELECT * FROM note") == [(1, "a", 1)]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "sql",
    [
        "TRUNCATE skill",
        "COPY skill FROM STDIN",
        "COPY skill TO PROGRAM 'true'",
        "DROP TABLE skill",
        "ALTER TABLE skill ADD COLUMN x TEXT",
        "DELETE FROM tag; DELETE FROM note",
        "VACUUM",
        "COMMIT",
        "DELETE FROM takeback_journal",
        "WITH x AS (SELECT 1) SELECT * FROM x",
    ],
)
async def test_32_the_tool_refuses_by_name_what_is_no_write_of_rows(bench, sql):
    before = bench.dump()
    with pytest.raises(TakebackError) as caught:
        await bench.agent().rows.execute(sql=sql)
    assert caught.value.code.startswith(("rows.", "scope."))
    assert caught.value.hint
    assert bench.dump() == before
    assert bench.journal() == []


def test_33_what_another_tool_wrote_past_the_journal_is_seen_before_anything_is_given_back(engine):
    engine.schema(NOTE, "INSERT INTO note VALUES (1, 'a', 1), (2, 'b', 1)")
    act = engine.act("UPDATE note SET body = 'x'")
    engine.stranger("UPDATE note SET body = 'theirs' WHERE id = 2")
    (conflict,) = engine.conflicts(engine.take_back(act))
    assert (conflict.key, conflict.theirs) == (engine.key(2), "theirs")
    assert engine.stranger("SELECT body FROM note ORDER BY id") == [("x",), ("theirs",)]


def test_33_what_is_written_while_the_undo_runs_waits_or_is_seen(engine):
    """Between the look and the write nobody else gets at the row."""
    engine.schema(NOTE, "INSERT INTO note VALUES (1, 'a', 1)")
    act = engine.act("UPDATE note SET body = 'x'")
    if engine.name == "sqlite":
        engine.stranger("PRAGMA busy_timeout = 50")
    else:
        engine.stranger("SET lock_timeout = 50")
    dialect, ledger, link = engine.dialect, engine.ledger, engine.link
    dialect.begin(link)
    taken = ledger.take_back(link, ledger.entries(link, ids=[act]), id="undo", at="2026-11-30")
    assert taken.clean
    with pytest.raises(Exception, match="lock"):
        engine.stranger("UPDATE note SET body = 'theirs'")
    dialect.commit(link)
    assert engine.stranger("SELECT body FROM note") == [("a",)]
