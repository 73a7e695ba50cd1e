"""What the triggers see, whoever caused it, and that they see it right."""

import psycopg
import pytest

from takeback.errors import ConflictError, RefusedError

TWO = """
CREATE TABLE parent (id int PRIMARY KEY, name text);
CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO parent VALUES (1, 'a'), (2, 'b');
INSERT INTO child VALUES (10, 1), (11, 1), (12, 2);
"""


def _shapes(events):
    return [(e.table, e.before and e.before[0], e.after and e.after[0]) for e in events]


def test_nothing_is_captured_of_anybody_else(here):
    here.sql(TWO)
    catalog = here.install()
    here.dialect.begin(here.link)
    here.dialect.arm(here.link, catalog, "act")
    here.sql("UPDATE parent SET name = 'theirs'")
    assert here.dialect.collect(here.link, catalog) == []
    here.dialect.rollback(here.link)
    assert here.stranger.execute("SELECT current_setting('takeback.rows', true)").fetchone() == (None,)


def test_what_foreign_keys_cause_is_captured(here):
    here.sql(TWO)
    events = here.capture("DELETE FROM parent WHERE id = 1", "UPDATE parent SET id = 3 WHERE id = 2")
    assert sorted(_shapes(events), key=repr) == [
        ("child", "10", None),
        ("child", "11", None),
        ("child", "12", "12"),
        ("parent", "1", None),
        ("parent", "2", "3"),
    ]


@pytest.mark.parametrize(
    ("sql", "shapes"),
    [
        (
            "INSERT INTO parent VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = excluded.name",
            [("1", "1")],
        ),
        ("INSERT INTO parent VALUES (1, 'x'), (5, 'x') ON CONFLICT DO NOTHING", [(None, "5")]),
        (
            "MERGE INTO parent p USING (VALUES (1), (2), (7)) v(i) ON p.id = v.i"
            " WHEN MATCHED AND v.i = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'm'"
            " WHEN NOT MATCHED THEN INSERT VALUES (v.i, 'n')",
            [("1", None), ("2", "2"), (None, "7")],
        ),
        (
            "WITH gone AS (DELETE FROM parent WHERE id = 1 RETURNING name),"
            " more AS (INSERT INTO parent VALUES (8, 'c'))"
            " UPDATE parent SET name = (SELECT name FROM gone) WHERE id = 2",
            [("1", None), ("2", "2"), (None, "8")],
        ),
        ("DELETE FROM parent", [("1", None), ("2", None)]),
    ],
)
def test_every_way_to_write_is_captured(here, sql, shapes):
    here.sql(TWO)
    events = [event for event in here.capture(sql) if event.table == "parent"]
    assert sorted([shape[1:] for shape in _shapes(events)], key=repr) == sorted(shapes, key=repr)


def test_a_row_that_moves_between_partitions_is_one_row_of_the_whole(here):
    here.sql(
        """
        CREATE TABLE log (id int, year int, t text, PRIMARY KEY (id, year)) PARTITION BY RANGE (year);
        CREATE TABLE log_old PARTITION OF log FOR VALUES FROM (0) TO (2000);
        CREATE TABLE log_new (t text, gone int, year int NOT NULL, id int NOT NULL);
        ALTER TABLE log_new DROP COLUMN gone;
        ALTER TABLE log ATTACH PARTITION log_new FOR VALUES FROM (2000) TO (3000);
        INSERT INTO log VALUES (1, 1999, 'a'), (2, 1999, 'b');
        """
    )
    events = here.capture(
        "UPDATE log SET year = 2001 WHERE id = 1", "INSERT INTO log_new VALUES ('c', 2002, 3)"
    )
    assert events == [
        ("log", ("1", "1999", "a"), None),
        ("log", None, ("1", "2001", "a")),
        ("log", None, ("3", "2002", "c")),
    ]
    made = here.capture(
        "CREATE TABLE log_next PARTITION OF log FOR VALUES FROM (3000) TO (4000)",
        "INSERT INTO log VALUES (4, 3001, 'd')",
    )
    assert made == [("log", None, ("4", "3001", "d"))]


def test_tables_that_inherit_are_tables_of_their_own(here):
    here.sql(
        "CREATE TABLE base (id int PRIMARY KEY, t text);"
        "CREATE TABLE more (PRIMARY KEY (id)) INHERITS (base);"
        "INSERT INTO base VALUES (1, 'base'); INSERT INTO more VALUES (1, 'more')"
    )
    catalog = here.install()
    base = catalog.tables["base"]
    here.dialect.begin(here.link)
    here.dialect.arm(here.link, catalog, "act")
    assert here.dialect.read(here.link, base, [("1",)]) == {("1",): ("1", "base")}
    here.dialect.update(here.link, base, [(("1",), {"t": "new"})])
    here.dialect.delete(here.link, base, [("1",)])
    here.link.execute("UPDATE base SET t = 'both'")
    events = here.dialect.collect(here.link, catalog)
    here.dialect.rollback(here.link)
    assert events == [
        ("base", ("1", "base"), None),
        ("more", ("1", "more"), ("1", "both")),
    ]


def test_what_a_trigger_does_to_the_same_rows_is_told_in_its_order(here):
    here.sql(
        """
        CREATE TABLE t (id int PRIMARY KEY, a text, n int);
        INSERT INTO t VALUES (1, 'one', 0), (2, 'two', 0);
        CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NEW.n < 3 THEN UPDATE t SET n = n + 1; END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER a_touch AFTER INSERT OR UPDATE OF a ON t FOR EACH ROW EXECUTE FUNCTION touch();
        """
    )
    events = here.capture("UPDATE t SET a = a || '!'")
    assert sorted(events) == [
        ("t", ("1", "one", "0"), ("1", "one!", "2")),
        ("t", ("2", "two", "0"), ("2", "two!", "2")),
    ]
    events = here.capture("INSERT INTO t VALUES (3, 'three', 0)")
    assert ("t", None, ("3", "three", "1")) in events
    assert len(events) == 3


def test_keys_that_cascade_within_one_table_are_told_in_their_order(here):
    here.sql(
        "CREATE TABLE t (id int PRIMARY KEY, up int REFERENCES t ON UPDATE CASCADE ON DELETE CASCADE);"
        "INSERT INTO t VALUES (1, NULL), (2, 1), (3, 2)"
    )
    events = here.capture("UPDATE t SET id = id + 100")
    assert sorted(events) == [
        ("t", ("1", None), ("101", None)),
        ("t", ("2", "1"), ("102", "101")),
        ("t", ("3", "2"), ("103", "102")),
    ]


def test_what_runs_at_commit_runs_before_it_is_collected(here):
    here.sql(
        """
        CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE audit (id int PRIMARY KEY, of int);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO audit VALUES (NEW.id + 1000, NEW.id); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER late AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION note();
        """
    )
    assert _shapes(here.capture("INSERT INTO t VALUES (1)")) == [("t", None, "1"), ("audit", None, "1001")]


def test_what_a_savepoint_or_a_handler_takes_back_was_never_captured(here):
    here.sql(TWO)
    many = "INSERT INTO parent SELECT i, repeat('x', 100) FROM generate_series(100, 300) i"
    events = here.capture(
        "INSERT INTO parent VALUES (3, 'kept')",
        "SAVEPOINT a",
        "INSERT INTO parent VALUES (4, 'gone')",
        many,
        "ROLLBACK TO a",
        "DO $$ BEGIN INSERT INTO parent VALUES (5, 'gone'); RAISE 'x';"
        " EXCEPTION WHEN raise_exception THEN NULL; END $$",
        "INSERT INTO parent VALUES (6, 'kept')",
    )
    assert _shapes(events) == [("parent", None, "3"), ("parent", None, "6")]


def test_a_large_act_is_captured_whole_and_again(here):
    here.sql(TWO)
    catalog = here.install()
    for _ in range(3):
        here.dialect.begin(here.link)
        here.dialect.arm(here.link, catalog, "act")
        here.link.execute(
            "INSERT INTO parent SELECT i, repeat('é', i % 50) FROM generate_series(100, 1099) i"
        )
        events = here.dialect.collect(here.link, catalog)
        assert [e.after for e in events] == [(str(i), "é" * (i % 50)) for i in range(100, 1100)]
        here.link.execute("UPDATE parent SET name = NULL WHERE id >= 100")
        events = here.dialect.collect(here.link, catalog)
        assert {(e.before, e.after) for e in events} == {
            ((str(i), "é" * (i % 50)), (str(i), None)) for i in range(100, 1100)
        }
        here.link.execute("DELETE FROM parent WHERE id >= 100")
        here.dialect.arm(here.link, catalog, "again")
        assert here.dialect.collect(here.link, catalog) == []
        here.dialect.commit(here.link)
    assert here.stranger.execute(
        "SELECT count(*) FROM pg_class WHERE relname = 'takeback_captured'"
    ).fetchone() == (0,)


def test_truncate_is_refused_while_an_act_runs_and_nobody_elses(here):
    here.sql(TWO + "CREATE FUNCTION wipe() RETURNS void LANGUAGE sql AS 'TRUNCATE parent CASCADE'")
    here.install()
    with pytest.raises(RefusedError) as refused:
        here.capture("SELECT wipe()")
    assert refused.value.code == "rows.truncate"
    here.sql("TRUNCATE parent CASCADE")


def test_a_partition_is_not_truncated_either(here):
    here.sql(
        "CREATE TABLE log (id int PRIMARY KEY) PARTITION BY RANGE (id);"
        "CREATE TABLE log_1 PARTITION OF log FOR VALUES FROM (0) TO (10)"
    )
    with pytest.raises(RefusedError):
        here.capture("TRUNCATE log_1")


def test_a_table_without_a_key_is_not_changed_unseen(here):
    here.sql(
        "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE loose (id int REFERENCES t ON DELETE CASCADE);"
        "INSERT INTO t VALUES (1), (2); INSERT INTO loose VALUES (1)"
    )
    here.install()
    with pytest.raises(RefusedError) as refused:
        here.capture("DELETE FROM t WHERE id = 1")
    assert refused.value.code == "rows.unjournaled"
    assert "loose" in refused.value.message
    assert _shapes(here.capture("DELETE FROM t WHERE id = 2")) == [("t", "2", None)]
    here.sql("INSERT INTO loose VALUES (2); DELETE FROM t")


def test_a_table_of_another_role_is_not_changed_unseen(here):
    with here.server.connect(here.name) as admin:
        admin.execute("CREATE TABLE theirs (id int PRIMARY KEY); GRANT ALL ON theirs TO app")
    here.sql("CREATE TABLE t (id int PRIMARY KEY)")
    assert _shapes(here.capture("INSERT INTO t VALUES (1)")) == [("t", None, "1")]
    with pytest.raises(RefusedError) as refused:
        here.capture("INSERT INTO theirs VALUES (1)")
    assert refused.value.code == "rows.unjournaled"


def test_who_switches_capture_off_is_refused(here):
    here.sql(TWO)
    with pytest.raises(RefusedError) as refused:
        here.capture("SELECT set_config('takeback.act', '', true)", "DELETE FROM parent")
    assert refused.value.code == "rows.disarmed"


@pytest.mark.parametrize(
    "change", ["ADD COLUMN c int DEFAULT 3", "DROP COLUMN name", "RENAME COLUMN name TO title"]
)
def test_a_table_that_changes_under_an_act_stops_it(here, change):
    here.sql("CREATE TABLE t (id int PRIMARY KEY, name text)")
    catalog = here.install()
    here.dialect.begin(here.link)
    here.dialect.arm(here.link, here.dialect.refresh(here.link, catalog), "act")
    here.sql(f"ALTER TABLE t {change}")
    with pytest.raises(ConflictError) as changed:
        here.link.execute("INSERT INTO t (id) VALUES (1)")
    assert changed.value.code == "rows.changed"
    assert changed.value.retryable
    here.dialect.rollback(here.link)
    here.dialect.begin(here.link)
    anew = here.dialect.refresh(here.link, catalog)
    here.dialect.arm(here.link, anew, "act")
    here.link.execute("INSERT INTO t (id) VALUES (1)")
    (event,) = here.dialect.collect(here.link, anew)
    assert len(event.after) == len(anew.tables["t"].columns)
    here.dialect.rollback(here.link)


def test_another_session_that_says_the_same_word_harms_nobody(here):
    here.sql(TWO)
    here.install()
    here.sql("SET takeback.act = 'theirs'")
    here.sql("INSERT INTO parent SELECT i, 'x' FROM generate_series(100, 2000) i")
    here.sql("UPDATE parent SET name = 'y'")
    assert here.stranger.execute("SELECT current_setting('takeback.rows', true)").fetchone() == ("",)


def test_functions_of_another_search_path_change_nothing(here):
    here.sql(
        TWO
        + """
        CREATE SCHEMA evil;
        CREATE FUNCTION evil.textne(text, text) RETURNS bool LANGUAGE sql AS 'SELECT false';
        CREATE FUNCTION evil.write() RETURNS void LANGUAGE sql SET search_path = evil, public, pg_catalog
            AS 'INSERT INTO parent VALUES (9, NULL)';
        """
    )
    assert here.capture("SELECT evil.write()") == [("parent", None, ("9", None))]


def test_a_function_of_another_owner_is_captured_as_well(here):
    here.sql(TWO + "GRANT ALL ON parent TO other")
    with here.server.connect(here.name) as admin:
        admin.execute(
            "CREATE FUNCTION theirs() RETURNS void LANGUAGE sql SECURITY DEFINER AS"
            " $$ INSERT INTO parent SELECT i, repeat('x', 100) FROM generate_series(100, 299) i $$;"
            "ALTER FUNCTION theirs() OWNER TO other"
        )
    many = "INSERT INTO parent SELECT i, repeat('x', 100) FROM generate_series(300, 499) i"
    assert len(here.capture("SELECT theirs()", many)) == 400
    assert len(here.capture(many, "SELECT theirs()")) == 400


def test_install_twice_does_nothing_and_remove_takes_all_of_ours_away(here):
    here.sql(TWO + "CREATE TABLE loose (x int); CREATE TABLE takeback_notes (id int PRIMARY KEY)")
    told = (
        "SELECT 'class', oid::text, relname::text, xmin::text FROM pg_class WHERE oid >= 16384"
        " UNION ALL SELECT 'proc', oid::text, proname::text, xmin::text FROM pg_proc WHERE oid >= 16384"
        " UNION ALL SELECT 'trigger', oid::text, tgname::text, xmin::text FROM pg_trigger WHERE oid >= 16384"
        " ORDER BY 1, 2"
    )
    before = {row[:3] for row in here.stranger.execute(told).fetchall()}
    here.install()
    once = here.stranger.execute(told).fetchall()
    here.install()
    assert here.stranger.execute(told).fetchall() == once
    here.dialect.remove(here.link)
    assert {row[:3] for row in here.stranger.execute(told).fetchall()} == before
    here.dialect.remove(here.link)


def test_tables_that_are_outside_may_be_changed_by_triggers(here):
    here.sql("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE audit (of int)")
    here.dialect = type(here.dialect)(frozenset({"audit"}))
    assert _shapes(here.capture("INSERT INTO audit VALUES (1)", "INSERT INTO t VALUES (1)")) == [
        ("t", None, "1")
    ]


def test_what_goes_past_the_link_is_captured_and_refused_as_well(here):
    here.sql(TWO + "CREATE TABLE loose (x int)")
    catalog = here.install()
    here.dialect.begin(here.link)
    here.dialect.arm(here.link, here.dialect.refresh(here.link, catalog), "act")
    here.link.execute("UPDATE parent SET name = %s WHERE id = 1", ("link",))
    here.link.connection.execute("UPDATE parent SET name = 'past' WHERE id = 2")
    assert len(here.dialect.collect(here.link, catalog)) == 2
    with pytest.raises(psycopg.Error) as refused:
        here.link.connection.execute("INSERT INTO loose VALUES (1)")
    told = here.dialect.refusal(refused.value)
    assert told is not None
    assert told.code == "rows.unjournaled"
    here.dialect.rollback(here.link)
    assert here.dialect.refusal(ValueError()) is None


def test_what_came_along_with_the_first_statement_is_collected_once(here):
    here.sql(TWO)
    catalog = here.install()
    sql = "UPDATE parent SET name = name || %s WHERE id = %s"
    many = "INSERT INTO parent SELECT i, %s FROM generate_series(100, 299) i"
    for first, params, count in ((sql, ("!", 1), 1), (many, ("x" * 100,), 200)):
        here.dialect.begin(here.link)
        here.dialect.arm(here.link, here.dialect.refresh(here.link, catalog), "act")
        here.link.execute(first, params)
        assert len(here.dialect.collect(here.link, catalog)) == count
        assert here.dialect.collect(here.link, catalog) == []
        here.link.execute(sql, ("?", 2))
        assert len(here.dialect.collect(here.link, catalog)) == 1
        here.dialect.rollback(here.link)
        here.dialect.begin(here.link)
        here.link.execute(first, params)
        here.link.execute(sql, ("?", 2))
        assert len(here.dialect.collect(here.link, catalog)) == count + 1
        here.link.execute(first.replace("100, 299", "300, 499"), params)
        here.dialect.arm(here.link, catalog, "another")
        assert here.dialect.collect(here.link, catalog) == []
        here.dialect.rollback(here.link)
        here.dialect.begin(here.link)
        here.link.execute(first, params)
        here.dialect.arm(here.link, catalog, "another")
        assert here.dialect.collect(here.link, catalog) == []
        here.dialect.rollback(here.link)
