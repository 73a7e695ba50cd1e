"""Constraints hold while things are given back, or what stands against it is named."""

import pytest

PARENTS = (
    "CREATE TABLE parent (id INTEGER PRIMARY KEY, name TEXT)",
    "CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parent (id) {on_delete})",
)
ACTIONS = ("", "ON DELETE CASCADE", "ON DELETE SET NULL", "ON DELETE RESTRICT")


def family(engine, on_delete=""):
    engine.schema(*(each.format(on_delete=on_delete) for each in PARENTS))
    engine.schema("INSERT INTO parent VALUES (1, 'p')", "INSERT INTO child VALUES (1, 1), (2, 1)")


@pytest.mark.parametrize("on_delete", ACTIONS[1:3])
def test_what_a_foreign_key_did_is_given_back(engine, on_delete):
    family(engine, on_delete)
    before = engine.dump()
    act = engine.act("DELETE FROM parent WHERE id = 1")
    assert len(engine.written.changes) == 3
    assert engine.take_back(act).clean
    assert engine.dump() == before


@pytest.mark.parametrize("on_delete", ACTIONS)
def test_parents_and_children_of_one_act_go_and_come_together(engine, on_delete):
    family(engine, on_delete)
    before = engine.dump()
    act = engine.act("INSERT INTO parent VALUES (2, 'q')", "INSERT INTO child VALUES (3, 2), (4, 2)")
    after = engine.dump()
    assert engine.take_back(act).clean
    assert engine.dump() == before
    assert engine.take_back(engine.undone[-1]).clean
    assert engine.dump() == after


@pytest.mark.parametrize("on_delete", ACTIONS)
def test_a_parent_to_which_others_attached_since_is_a_conflict(engine, on_delete):
    family(engine, on_delete)
    act = engine.act("INSERT INTO parent VALUES (2, 'q')")
    engine.stranger("INSERT INTO child VALUES (3, 2)")
    before = engine.dump()
    conflicts = engine.conflicts(engine.take_back(act))
    assert any("parent" in conflict.constraint for conflict in conflicts)
    assert engine.dump() == before


@pytest.mark.parametrize("on_delete", ACTIONS)
def test_children_that_the_act_moved_move_back_before_their_parent_goes(engine, on_delete):
    family(engine, on_delete)
    before = engine.dump()
    act = engine.act("INSERT INTO parent VALUES (2, 'q')", "UPDATE child SET parent = 2")
    assert engine.take_back(act).clean
    assert engine.dump() == before


def test_a_parent_that_is_gone_is_a_conflict_for_its_child(engine):
    family(engine)
    act = engine.act("DELETE FROM child WHERE id = 1")
    engine.stranger("DELETE FROM child WHERE id = 2")
    engine.stranger("DELETE FROM parent WHERE id = 1")
    (conflict,) = engine.conflicts(engine.take_back(act))
    assert (conflict.table, conflict.constraint != "") == ("child", True)


@pytest.mark.parametrize("on_delete", ACTIONS)
def test_a_tree_within_one_table_goes_and_comes(engine, on_delete):
    engine.schema(f"CREATE TABLE node (id INTEGER PRIMARY KEY, up INTEGER REFERENCES node (id) {on_delete})")
    engine.schema("INSERT INTO node VALUES (1, NULL)")
    before = engine.dump()
    act = engine.act(
        "INSERT INTO node VALUES (2, 1)", "INSERT INTO node VALUES (3, 2)", "INSERT INTO node VALUES (4, 3)"
    )
    after = engine.dump()
    assert engine.take_back(act).clean
    assert engine.dump() == before
    assert engine.take_back(engine.undone[-1]).clean
    assert engine.dump() == after


def test_the_change_of_a_parents_key_is_followed_by_its_children_both_ways(engine):
    engine.schema(
        "CREATE TABLE parent (id INTEGER PRIMARY KEY)",
        "CREATE TABLE child (id INTEGER PRIMARY KEY, up INTEGER REFERENCES parent (id) ON UPDATE CASCADE)",
        "INSERT INTO parent VALUES (1), (5)",
        "INSERT INTO child VALUES (1, 1)",
    )
    before = engine.dump()
    act = engine.act("UPDATE parent SET id = 2 WHERE id = 1")
    assert len(engine.written.changes) == 2
    assert engine.take_back(act).clean
    assert engine.dump() == before


def unique(engine, null="NOT NULL"):
    engine.schema(f"CREATE TABLE seat (id INTEGER PRIMARY KEY, place INTEGER {null} UNIQUE, who TEXT)")
    engine.schema("INSERT INTO seat VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c')")


@pytest.mark.parametrize("null", ["NOT NULL", "NULL"])
def test_unique_values_that_went_round_go_back(engine, null):
    unique(engine, null)
    before = engine.dump()
    act = engine.act(
        "UPDATE seat SET place = 99 WHERE id = 1",
        "UPDATE seat SET place = 10 WHERE id = 2",
        "UPDATE seat SET place = 20 WHERE id = 3",
        "UPDATE seat SET place = 30 WHERE id = 1",
    )
    assert engine.take_back(act).clean
    assert engine.dump() == before


def test_a_unique_value_goes_back_from_a_row_that_goes(engine):
    unique(engine)
    before = engine.dump()
    act = engine.act(
        "UPDATE seat SET place = 40 WHERE id = 1",
        "INSERT INTO seat VALUES (4, 10, 'd')",
        "DELETE FROM seat WHERE id = 2",
        "UPDATE seat SET place = 20 WHERE id = 3",
    )
    assert engine.take_back(act).clean
    assert engine.dump() == before


def test_a_unique_value_that_is_taken_is_a_conflict_by_name_and_row(engine):
    unique(engine)
    act = engine.act("DELETE FROM seat WHERE id = 2", "UPDATE seat SET who = 'x' WHERE id = 1")
    engine.stranger("INSERT INTO seat VALUES (7, 20, 'theirs')")
    (conflict,) = engine.conflicts(engine.take_back(act))
    assert (conflict.table, conflict.key, conflict.entry) == ("seat", engine.key(2), act)
    assert "place" in conflict.constraint
    assert not engine.preview(act).clean
    assert not engine.take_back(act, force=True).clean


def test_a_check_that_came_since_is_a_conflict(sqlite):
    sqlite.schema("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)", "INSERT INTO t VALUES (1, -1)")
    act = sqlite.act("UPDATE t SET n = 1")
    sqlite.schema(
        "CREATE TABLE t2 (id INTEGER PRIMARY KEY, n INTEGER CONSTRAINT positive CHECK (n > 0))",
        "INSERT INTO t2 SELECT * FROM t",
        "DROP TABLE t",
        "ALTER TABLE t2 RENAME TO t",
    )
    (conflict,) = sqlite.conflicts(sqlite.take_back(act))
    assert (conflict.constraint, conflict.key) == ("positive", (1,))
    assert not sqlite.preview(act).clean


def test_rows_that_a_replace_took_away_are_given_back(sqlite):
    unique(sqlite)
    before = sqlite.dump()
    act = sqlite.act("INSERT OR REPLACE INTO seat VALUES (1, 20, 'n')")
    assert len(sqlite.written.changes) == 2
    assert sqlite.take_back(act).clean
    assert sqlite.dump() == before


@pytest.mark.parametrize("verb", ["INSERT OR REPLACE", "REPLACE"])
def test_rows_that_a_replace_took_away_are_given_back_where_there_are_triggers(sqlite, verb):
    unique(sqlite)
    sqlite.schema(
        "CREATE TABLE log (id INTEGER PRIMARY KEY, what TEXT)",
        "CREATE TRIGGER gone AFTER DELETE ON seat BEGIN INSERT INTO log (what) VALUES ('gone'); END",
        "CREATE UNIQUE INDEX who ON seat (who COLLATE NOCASE) WHERE who IS NOT NULL",
    )
    before = sqlite.dump()
    act = sqlite.act(f"{verb} INTO seat VALUES (1, 20, 'C')")
    assert sqlite.stranger("SELECT count(*) FROM seat") == [(1,)]
    assert sqlite.stranger("SELECT count(*) FROM log") == [(0,)]
    assert len(sqlite.written.changes) == 3
    assert sqlite.take_back(act).clean
    assert sqlite.dump()["seat"] == before["seat"]


def test_rows_that_a_replace_took_away_by_an_index_on_expressions_are_given_back(sqlite):
    sqlite.schema(
        "CREATE TABLE person (id INTEGER PRIMARY KEY, first TEXT, last TEXT, note TEXT)",
        "CREATE UNIQUE INDEX name ON person (lower(first || '(,)') /* , */ DESC, last COLLATE NOCASE)"
        " WHERE note IS NOT NULL",
        "CREATE TRIGGER idle AFTER DELETE ON person BEGIN SELECT 1; END",
        "INSERT INTO person VALUES (1, 'Ada', 'L', ''), (2, 'Alan', 'T', ''), (3, 'ADA', 'l', NULL)",
    )
    before = sqlite.dump()
    act = sqlite.act("REPLACE INTO person VALUES (4, 'aDA', 'l', 'new')")
    assert sqlite.stranger("SELECT id FROM person") == [(2,), (3,), (4,)]
    assert len(sqlite.written.changes) == 2
    assert sqlite.take_back(act).clean
    assert sqlite.dump() == before


def test_an_update_or_replace_is_given_back_where_there_are_triggers(sqlite):
    unique(sqlite)
    sqlite.schema(
        "CREATE TABLE log (id INTEGER PRIMARY KEY, what TEXT)",
        "CREATE TRIGGER gone AFTER DELETE ON seat BEGIN INSERT INTO log (what) VALUES ('gone'); END",
    )
    before = sqlite.dump()
    act = sqlite.act(
        "UPDATE OR REPLACE seat SET place = 20 WHERE id = 1",
        "INSERT OR IGNORE INTO seat VALUES (3, 99, 'ignored')",
        "DELETE FROM seat WHERE id = 3",
        "INSERT INTO seat VALUES (8, 80, 'new')",
    )
    assert sqlite.take_back(act).clean
    assert sqlite.dump()["seat"] == before["seat"]


def test_a_constraint_that_replaces_does_not_replace_a_strangers_row(sqlite):
    sqlite.schema(
        "CREATE TABLE seat (id INTEGER PRIMARY KEY, place INTEGER UNIQUE ON CONFLICT REPLACE)",
        "INSERT INTO seat VALUES (1, 10)",
    )
    act = sqlite.act("DELETE FROM seat WHERE id = 1")
    sqlite.stranger("INSERT INTO seat VALUES (2, 10)")
    assert not sqlite.take_back(act).clean
    assert sqlite.stranger("SELECT * FROM seat") == [(2, 10)]
