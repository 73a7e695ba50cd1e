"""Constraints, cases 20 to 26: they hold while things are given back, or what stands against it is named."""

import pytest


def test_20_a_unique_value_taken_by_a_new_row_names_the_constraint_and_the_row(engine):
    engine.schema(
        "CREATE TABLE seat (id INTEGER PRIMARY KEY, place INTEGER, CONSTRAINT one_a_place UNIQUE (place))"
    )
    engine.schema("INSERT INTO seat VALUES (1, 10), (2, 20)")
    acts = [
        engine.act("UPDATE seat SET place = 30 WHERE id = 1"),
        engine.act("DELETE FROM seat WHERE id = 2"),
    ]
    engine.stranger("INSERT INTO seat VALUES (7, 10), (8, 20)")
    before = engine.dump()
    for act, key in zip(acts, (1, 2), strict=True):
        (conflict,) = engine.conflicts(engine.take_back(act))
        assert (conflict.table, conflict.key, conflict.column) == ("seat", engine.key(key), "place")
        assert ("place" if engine.name == "sqlite" else "one_a_place") in conflict.constraint
        assert not engine.take_back(act, force=True).clean
    assert engine.dump() == before


@pytest.mark.parametrize("count", [2, 3, 5])
def test_21_unique_values_that_went_round_go_back(engine, count):
    engine.schema(
        "CREATE TABLE seat (id INTEGER PRIMARY KEY, place INTEGER NOT NULL UNIQUE, code TEXT UNIQUE)"
    )
    for number in range(count):
        engine.stranger("INSERT INTO seat VALUES (?, ?, ?)", (number, number * 10, f"c{number}"))
    before = engine.dump()
    act = engine.act(
        "UPDATE seat SET place = -place - 1, code = 'x' || code",
        *(
            f"UPDATE seat SET place = {(n + 1) % count * 10}, code = 'c{(n + 1) % count}' WHERE id = {n}"
            for n in range(count)
        ),
    )
    after = engine.dump()
    assert engine.take_back(act).clean
    assert engine.dump() == before
    assert engine.take_back(engine.undone[-1]).clean
    assert engine.dump() == after


def test_21_keys_and_unique_values_that_went_round_together_go_back(engine):
    engine.schema(
        "CREATE TABLE seat (id INTEGER PRIMARY KEY, place INTEGER NOT NULL UNIQUE)",
        "INSERT INTO seat VALUES (1, 10), (2, 20), (3, 30)",
    )
    before = engine.dump()
    act = engine.act(
        "UPDATE seat SET id = id + 10, place = place + 1",
        "UPDATE seat SET id = 2, place = 20 WHERE id = 11",
        "UPDATE seat SET id = 3, place = 10 WHERE id = 12",
        "UPDATE seat SET id = 1, place = 30 WHERE id = 13",
    )
    assert engine.take_back(act).clean
    assert engine.dump() == before


def test_22_parents_and_children_of_one_step_go_and_come_in_order(engine):
    engine.schema(
        "CREATE TABLE parent (id INTEGER PRIMARY KEY)",
        "CREATE TABLE child (id INTEGER PRIMARY KEY, up INTEGER NOT NULL REFERENCES parent (id))",
        "INSERT INTO parent VALUES (1)",
        "INSERT INTO child VALUES (1, 1)",
    )
    before = engine.dump()
    acts = [
        engine.act("INSERT INTO parent VALUES (2)", "INSERT INTO child VALUES (2, 2), (3, 1)"),
        engine.act("DELETE FROM child WHERE up = 1", "DELETE FROM parent WHERE id = 1"),
    ]
    assert engine.take_back(*acts).clean
    assert engine.dump() == before
    assert engine.take_back(engine.undone[-1]).clean
    assert engine.stranger("SELECT id FROM parent") == [(2,)]


def test_22_a_tree_within_one_table_goes_and_comes(engine):
    engine.schema("CREATE TABLE node (id INTEGER PRIMARY KEY, up INTEGER REFERENCES node (id))")
    engine.schema("INSERT INTO node VALUES (5, NULL)", "INSERT INTO node VALUES (3, 5), (9, 3)")
    before = engine.dump()
    acts = [
        engine.act("INSERT INTO node VALUES (4, 9)", "INSERT INTO node VALUES (1, 4)"),
        engine.act("UPDATE node SET up = 1 WHERE id = 5"),
        engine.act("UPDATE node SET up = NULL", "DELETE FROM node"),
    ]
    assert engine.take_back(*acts).clean
    assert engine.dump() == before
    assert engine.take_back(engine.undone[-1]).clean
    assert engine.stranger("SELECT * FROM node") == []


def test_22_tables_that_refer_to_each_other_go_and_come(engine):
    engine.schema("CREATE TABLE team (id INTEGER PRIMARY KEY, lead INTEGER)")
    engine.schema("CREATE TABLE person (id INTEGER PRIMARY KEY, team INTEGER NOT NULL REFERENCES team (id))")
    if engine.name == "postgresql":
        engine.schema(
            "ALTER TABLE team ADD CONSTRAINT leads FOREIGN KEY (lead) REFERENCES person (id)"
            " DEFERRABLE INITIALLY IMMEDIATE"
        )
    else:
        engine.schema(
            "DROP TABLE team",
            "CREATE TABLE team (id INTEGER PRIMARY KEY, lead INTEGER REFERENCES person (id)"
            " DEFERRABLE INITIALLY DEFERRED)",
        )
    engine.schema("INSERT INTO team VALUES (1, NULL)", "INSERT INTO person VALUES (1, 1)")
    engine.schema("UPDATE team SET lead = 1")
    before = engine.dump()
    acts = [
        engine.act(
            "INSERT INTO team VALUES (2, NULL)",
            "INSERT INTO person VALUES (2, 2)",
            "UPDATE team SET lead = 2 WHERE id = 2",
        ),
        engine.act("UPDATE team SET lead = NULL", "DELETE FROM person", "DELETE FROM team"),
    ]
    assert engine.take_back(*acts).clean
    assert engine.dump() == before
    assert engine.take_back(engine.undone[-1]).clean
    assert engine.stranger("SELECT * FROM team") == engine.stranger("SELECT * FROM person") == []


def test_22_a_cycle_of_keys_that_can_not_wait_is_left_right_or_told(engine):
    """Here no order of inserts is allowed: it takes an update in between."""
    engine.schema(
        "CREATE TABLE node (id INTEGER PRIMARY KEY, next INTEGER REFERENCES node (id))",
        "INSERT INTO node VALUES (1, NULL), (2, 1)",
        "UPDATE node SET next = 2 WHERE id = 1",
    )
    before = engine.dump()
    act = engine.act("UPDATE node SET next = NULL", "DELETE FROM node")
    taken = engine.take_back(act)
    assert taken.clean, taken.effects
    assert engine.dump() == before


@pytest.mark.parametrize("action", ["CASCADE", "SET NULL", "SET DEFAULT"])
def test_23_what_a_foreign_key_did_in_the_step_is_journaled_and_given_back(engine, action):
    engine.schema(
        "CREATE TABLE parent (id INTEGER PRIMARY KEY)",
        "CREATE TABLE child (id INTEGER PRIMARY KEY,"
        f" up INTEGER DEFAULT 7 REFERENCES parent (id) ON DELETE {action})",
        "INSERT INTO parent VALUES (1), (7)",
        "INSERT INTO child VALUES (1, 1), (2, 1), (3, 7)",
    )
    before = engine.dump()
    act = engine.act("DELETE FROM parent WHERE id = 1")
    assert {each.table for each in engine.written.changes} == {"parent", "child"}
    assert len(engine.written.changes) == 3
    engine.stranger("INSERT INTO child VALUES (9, 7)")
    assert engine.take_back(act).clean
    assert engine.stranger("SELECT * FROM child WHERE id = 9") == [(9, 7)]
    engine.stranger("DELETE FROM child WHERE id = 9")
    assert engine.dump() == before


@pytest.mark.parametrize("action", ["NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"])
def test_24_a_parent_to_which_others_attached_children_is_a_conflict_and_they_stay(engine, action):
    engine.schema(
        "CREATE TABLE parent (id INTEGER PRIMARY KEY)",
        "CREATE TABLE child (id INTEGER PRIMARY KEY,"
        f" up INTEGER DEFAULT 7 REFERENCES parent (id) ON DELETE {action})",
        "INSERT INTO parent VALUES (7)",
    )
    act = engine.act("INSERT INTO parent VALUES (2)")
    engine.stranger("INSERT INTO child VALUES (3, 2)")
    for force in (False, True):
        found = engine.conflicts(engine.take_back(act, force=force))
        assert any("parent" in each.constraint or "child" in each.constraint for each in found), found
    assert not engine.preview(act).clean
    assert engine.stranger("SELECT * FROM child") == [(3, 2)]
    assert engine.stranger("SELECT id FROM parent ORDER BY id") == [(2,), (7,)]


ADDED = {
    "check": ("n INTEGER CONSTRAINT positive CHECK (n > 0)", "ADD CONSTRAINT positive CHECK (n > 0)"),
    "not null": ("n INTEGER NOT NULL", "ALTER COLUMN n SET NOT NULL"),
    "exclusion": (None, "ADD CONSTRAINT positive EXCLUDE USING btree (n WITH =)"),
}


@pytest.mark.parametrize("kind", list(ADDED))
def test_25_a_constraint_that_came_since_is_a_conflict(engine, kind):
    """SQLite has no exclusion constraints: there a unique index is the nearest."""
    old = {"check": "-1", "not null": "NULL", "exclusion": "5"}[kind]
    engine.schema(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)", f"INSERT INTO t VALUES (1, {old}), (2, 6)"
    )
    acts = [engine.act("UPDATE t SET n = 8 WHERE id = 1"), engine.act("DELETE FROM t WHERE id = 1")]
    engine.stranger("INSERT INTO t VALUES (3, 5)")
    column, altered = ADDED[kind]
    if engine.name == "postgresql":
        engine.schema(f"ALTER TABLE t {altered}")
    elif column is None:
        engine.schema("CREATE UNIQUE INDEX positive ON t (n)")
    else:
        engine.schema(
            f"CREATE TABLE u (id INTEGER PRIMARY KEY, {column})",
            "INSERT INTO u SELECT * FROM t",
            "DROP TABLE t",
            "ALTER TABLE u RENAME TO t",
        )
    before = engine.dump()
    (conflict,) = engine.conflicts(engine.take_back(*acts))
    assert (conflict.table, conflict.key) == ("t", engine.key(1))
    if kind != "not null":
        assert "n" in conflict.column if "t.n" in conflict.constraint else conflict.constraint == "positive"
    else:
        assert conflict.column == "n"
    assert engine.dump() == before
    assert engine.take_back(acts[1]).clean
    assert engine.stranger("SELECT n FROM t WHERE id = 1") == [(8,)]


def test_26_indexes_on_part_of_the_rows_and_on_expressions(engine):
    engine.schema(
        "CREATE TABLE mail (id INTEGER PRIMARY KEY, name TEXT, live INTEGER)",
        "CREATE UNIQUE INDEX one_live ON mail (name) WHERE live = 1",
        "CREATE UNIQUE INDEX folded ON mail (lower(name), live)",
        "INSERT INTO mail VALUES (1, 'Ada', 1), (2, 'Alan', 1)",
    )
    before = engine.dump()
    act = engine.act(
        "UPDATE mail SET live = 0 WHERE id = 1",
        "INSERT INTO mail VALUES (3, 'ADA', 1)",
        "UPDATE mail SET name = 'x' WHERE id = 2",
        "UPDATE mail SET name = 'Alan' WHERE id = 1",
    )
    after = engine.dump()
    assert engine.take_back(act).clean
    assert engine.dump() == before
    assert engine.take_back(engine.undone[-1]).clean
    assert engine.dump() == after
    engine.stranger("INSERT INTO mail VALUES (9, 'ALAN', 1)")
    (conflict,) = engine.conflicts(engine.take_back(act))
    assert "folded" in conflict.constraint
    assert (conflict.table, conflict.key) == ("mail", engine.key(2))


def test_26_what_an_index_on_expressions_keeps_apart_went_round_and_goes_back(engine):
    engine.schema(
        "CREATE TABLE mail (id INTEGER PRIMARY KEY, name TEXT)",
        "CREATE UNIQUE INDEX folded ON mail (lower(name))",
        "INSERT INTO mail VALUES (1, 'Ada'), (2, 'Alan'), (3, 'Grace')",
    )
    before = engine.dump()
    act = engine.act(
        "UPDATE mail SET name = '-' WHERE id = 1",
        "UPDATE mail SET name = 'ADA' WHERE id = 2",
        "UPDATE mail SET name = 'ALAN' WHERE id = 3",
        "UPDATE mail SET name = 'GRACE' WHERE id = 1",
    )
    assert engine.take_back(act).clean
    assert engine.dump() == before


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_26_a_flag_that_one_row_alone_may_have_goes_back(engine, order):
    engine.schema(
        "CREATE TABLE address (id INTEGER PRIMARY KEY, person INTEGER NOT NULL, main INTEGER NOT NULL)",
        "CREATE UNIQUE INDEX one_main ON address (person) WHERE main = 1",
    )
    one, other = order
    engine.schema(f"INSERT INTO address VALUES ({one}, 7, 1), ({other}, 7, 0), (3, 8, 1)")
    before = engine.dump()
    act = engine.act(
        f"UPDATE address SET main = 0 WHERE id = {one}", f"UPDATE address SET main = 1 WHERE id = {other}"
    )
    after = engine.dump()
    assert engine.take_back(act).clean
    assert engine.dump() == before
    assert engine.take_back(engine.undone[-1]).clean
    assert engine.dump() == after


def test_26_a_flag_that_another_row_has_by_now_is_a_conflict_also_in_the_preview(engine):
    engine.schema(
        "CREATE TABLE address (id INTEGER PRIMARY KEY, person INTEGER NOT NULL, main INTEGER NOT NULL)",
        "CREATE UNIQUE INDEX one_main ON address (person) WHERE main = 1",
        "INSERT INTO address VALUES (1, 7, 1), (2, 7, 0)",
    )
    act = engine.act("UPDATE address SET main = 0 WHERE id = 1")
    engine.stranger("UPDATE address SET main = 1 WHERE id = 2")
    assert not engine.preview(act).clean
    (conflict,) = engine.conflicts(engine.take_back(act))
    assert conflict.key == engine.key(1)
    assert ("one_main" if engine.name == "postgresql" else "address.person") in conflict.constraint


def test_26_an_insert_or_replace_that_removed_two_rows_gives_both_back(sqlite):
    sqlite.schema("CREATE TABLE seat (id INTEGER PRIMARY KEY, place INTEGER UNIQUE, who TEXT)")
    sqlite.schema("INSERT INTO seat VALUES (1, 10, 'a'), (2, 20, 'b')")
    before = sqlite.dump()
    act = sqlite.act("INSERT OR REPLACE INTO seat VALUES (1, 20, 'n')")
    assert sqlite.stranger("SELECT * FROM seat") == [(1, 20, "n")]
    assert sqlite.take_back(act).clean
    assert sqlite.dump() == before


def test_26_a_merge_and_an_upsert_give_back_what_they_replaced(postgresql):
    postgresql.schema("CREATE TABLE seat (id int PRIMARY KEY, place int UNIQUE, who text)")
    postgresql.schema("INSERT INTO seat VALUES (1, 10, 'a'), (2, 20, 'b')")
    before = postgresql.dump()
    acts = [
        postgresql.act(
            "INSERT INTO seat VALUES (3, 20, 'n') ON CONFLICT (place) DO UPDATE SET who = excluded.who"
        ),
        postgresql.act(
            "MERGE INTO seat s USING (VALUES (1), (5)) v(i) ON s.id = v.i WHEN MATCHED THEN DELETE"
            " WHEN NOT MATCHED THEN INSERT VALUES (v.i, 10, 'm')"
        ),
    ]
    assert postgresql.take_back(*acts).clean
    assert postgresql.dump() == before
