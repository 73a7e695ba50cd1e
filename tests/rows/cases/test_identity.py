"""Identity, cases 1 to 9: which row is which, whatever happened to its key."""

import pytest

from takeback.errors import RefusedError

COUNTED = {
    "sqlite": "CREATE TABLE item (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT)",
    "postgresql": "CREATE TABLE item (id serial PRIMARY KEY, name TEXT)",
}
TWO = "INSERT INTO item (name) VALUES ('one'), ('two')"


@pytest.fixture
def counted(engine):
    """Rows under numbers that are never given twice."""
    engine.schema(COUNTED[engine.name], TWO)
    return engine


@pytest.fixture
def plain(engine):
    """Rows under numbers that may be given again."""
    engine.schema("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT)")
    engine.schema("INSERT INTO item VALUES (1, 'one'), (2, 'two')")
    return engine


def test_01_delete_then_another_insert_reuses_the_key(plain):
    act = plain.act("DELETE FROM item WHERE id = 2")
    plain.stranger("INSERT INTO item SELECT max(id) + 1, 'theirs' FROM item")
    (conflict,) = plain.conflicts(plain.take_back(act))
    assert (conflict.table, conflict.key) == ("item", plain.key(2))
    assert (conflict.ours, conflict.theirs) == ({"name": "two"}, {"name": "theirs"})
    assert plain.stranger("SELECT * FROM item ORDER BY id") == [(1, "one"), (2, "theirs")]


def test_01_sqlite_itself_gives_the_number_again(sqlite):
    sqlite.schema("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT)", TWO)
    act = sqlite.act("DELETE FROM item WHERE id = 2")
    sqlite.stranger("INSERT INTO item (name) VALUES ('theirs')")
    assert [each.key for each in sqlite.conflicts(sqlite.take_back(act))] == [(2,)]
    assert sqlite.stranger("SELECT name FROM item WHERE id = 2") == [("theirs",)]


def test_02_the_same_with_a_sequence_puts_the_old_row_beside_the_new(counted):
    act = counted.act("DELETE FROM item WHERE id = 2")
    counted.stranger("INSERT INTO item (name) VALUES ('theirs')")
    assert counted.take_back(act).clean
    counted.stranger("INSERT INTO item (name) VALUES ('next')")
    rows = [(1, "one"), (2, "two"), (3, "theirs"), (4, "next")]
    assert counted.stranger("SELECT * FROM item ORDER BY id") == rows


def test_03_undo_insert_then_a_new_insert_has_a_new_id(counted):
    act = counted.act("INSERT INTO item (name) VALUES ('ours')")
    assert counted.take_back(act).clean
    counted.stranger("INSERT INTO item (name) VALUES ('theirs')")
    assert counted.stranger("SELECT id FROM item WHERE name = 'theirs'") == [(4,)]
    assert counted.take_back(counted.undone[-1]).clean
    rows = [(1, "one"), (2, "two"), (3, "ours"), (4, "theirs")]
    assert counted.stranger("SELECT * FROM item ORDER BY id") == rows


def test_03_where_the_id_is_given_again_the_redo_is_a_conflict(plain):
    act = plain.act("INSERT INTO item VALUES (3, 'ours')")
    assert plain.take_back(act).clean
    plain.stranger("INSERT INTO item VALUES (3, 'theirs')")
    assert [each.key for each in plain.conflicts(plain.take_back(plain.undone[-1]))] == [plain.key(3)]
    assert plain.stranger("SELECT name FROM item WHERE id = 3") == [("theirs",)]


def test_04_a_key_changed_by_the_step_is_changed_back(plain):
    before = plain.dump()
    act = plain.act("UPDATE item SET id = id + 10, name = 'moved'")
    assert plain.take_back(act).clean
    assert plain.dump() == before


def test_04_a_key_changed_by_a_later_act_is_followed_when_both_go(plain):
    before = plain.dump()
    acts = [
        plain.act("UPDATE item SET name = 'x' WHERE id = 1"),
        plain.act("UPDATE item SET id = 9 WHERE id = 1"),
    ]
    assert not plain.take_back(acts[0]).clean
    assert plain.take_back(*acts).clean
    assert plain.dump() == before


def test_04_a_key_changed_later_by_someone_else_is_told_and_nothing_is_done(plain):
    act = plain.act("UPDATE item SET name = 'ours'")
    plain.stranger("UPDATE item SET id = 9 WHERE id = 1")
    before = plain.dump()
    found = plain.conflicts(plain.take_back(act))
    assert [(each.key, each.action) for each in found] == [(plain.key(1), "gone")]
    assert plain.dump() == before


KEYS = [
    ("sqlite", "k TEXT COLLATE NOCASE PRIMARY KEY", ["a", "B"], "A"),
    ("sqlite", "k TEXT COLLATE RTRIM PRIMARY KEY", ["a", "b"], "a "),
    ("sqlite", "k PRIMARY KEY", [1, "1", b"1"], 1.0),
    ("sqlite", "k NUMERIC PRIMARY KEY", [1, 2.5], "1.0"),
    ("sqlite", "k TEXT, l INTEGER DEFAULT 7, PRIMARY KEY (l, k)", ["a", "A", "1"], "a"),
    ("postgresql", "k text PRIMARY KEY", ["a", "A", "", " "], "a"),
    (
        "postgresql",
        "k uuid PRIMARY KEY",
        ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
        "{A0EEBC999C0B4EF8BB6D6BB9BD380A11}",
    ),
    ("postgresql", "k numeric PRIMARY KEY", ["1", "2.50", "1e3"], "1.00"),
    ("postgresql", "k float8 PRIMARY KEY", ["0", "1", "NaN"], "-0"),
    ("postgresql", "k char(4) PRIMARY KEY", ["a", "b"], "a   "),
    ("postgresql", "k text, l int DEFAULT 7, PRIMARY KEY (l, k)", ["a", "A", "1"], "a"),
]


@pytest.mark.parametrize(("name", "key", "values", "form"), KEYS, ids=[each[1] for each in KEYS])
def test_05_keys_of_every_kind_name_their_rows(request, name, key, values, form):
    """`form` is another way to write the first of the values."""
    engine = request.getfixturevalue(name)
    engine.schema(f"CREATE TABLE keyed (v TEXT, {key})")
    for value in values:
        engine.stranger("INSERT INTO keyed (k, v) VALUES (?, 'v')", (value,))
    before = engine.dump()
    acts = [
        engine.act("UPDATE keyed SET v = 'w'"),
        engine.act(("UPDATE keyed SET k = ? WHERE k = ?", (form, values[0]))),
        engine.act("DELETE FROM keyed"),
        engine.act(("INSERT INTO keyed (k, v) VALUES (?, 'again')", (form,))),
    ]
    after = engine.dump()
    kept = [act for act in acts if engine.entries(act)]
    assert engine.take_back(*kept).clean
    assert engine.dump() == before
    assert engine.take_back(engine.undone[-1]).clean
    assert engine.dump() == after
    assert engine.take_back(*kept).clean
    gone = engine.act("DELETE FROM keyed")
    engine.stranger("INSERT INTO keyed (k, v) VALUES (?, 'theirs')", (form,))
    assert len(engine.conflicts(engine.take_back(gone))) == 1
    assert engine.stranger("SELECT v FROM keyed") == [("theirs",)]


def test_06_a_table_without_a_key_is_refused_by_name_and_not_written(engine):
    engine.schema("CREATE TABLE loose (a INTEGER, b TEXT)", "INSERT INTO loose VALUES (1, 'x')")
    assert "no primary key" in engine.ledger.catalog.refused["loose"]
    for statement in ("INSERT INTO loose VALUES (2, 'y')", "UPDATE loose SET b = 'y'", "DELETE FROM loose"):
        with pytest.raises(RefusedError, match="loose") as caught:
            engine.act(statement)
        assert caught.value.code == "rows.unjournaled"
    assert engine.stranger("SELECT * FROM loose") == [(1, "x")]


def test_06_a_row_with_null_in_its_key_is_refused(sqlite):
    sqlite.schema("CREATE TABLE item (a TEXT, b TEXT, v TEXT, PRIMARY KEY (a, b))")
    sqlite.stranger("INSERT INTO item VALUES ('x', 'y', 'v'), ('x', NULL, 'theirs')")
    before = sqlite.dump()
    for statement in (
        "INSERT INTO item VALUES ('z', NULL, 'ours')",
        "UPDATE item SET b = NULL WHERE b = 'y'",
        "DELETE FROM item WHERE b IS NULL",
    ):
        with pytest.raises(RefusedError) as caught:
            sqlite.act(statement)
        assert caught.value.code == "rows.key"
    assert sqlite.dump() == before


def test_07_identity_columns_that_are_always_generated_come_back_under_their_number(postgresql):
    postgresql.schema(
        "CREATE TABLE item (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text,"
        " other int GENERATED BY DEFAULT AS IDENTITY)",
        TWO,
    )
    before = postgresql.dump()
    acts = [postgresql.act("UPDATE item SET name = 'x'"), postgresql.act("DELETE FROM item")]
    assert postgresql.take_back(*acts).clean
    assert postgresql.dump() == before
    postgresql.stranger("INSERT INTO item (name) VALUES ('next')")
    assert postgresql.stranger("SELECT id FROM item WHERE name = 'next'") == [(3,)]


def test_08_a_delete_and_insert_of_the_same_row_in_one_step_is_nothing(plain):
    act = plain.act("DELETE FROM item WHERE id = 1", "INSERT INTO item VALUES (1, 'one')")
    assert plain.written.changes == []
    assert plain.entries(act) == []


def test_08_a_delete_and_insert_of_another_row_under_its_key_is_an_update(plain):
    before = plain.dump()
    act = plain.act("DELETE FROM item WHERE id = 1", "INSERT INTO item VALUES (1, 'new')")
    (change,) = plain.written.changes
    assert (change.before, change.after) == (plain.values(1, "one"), plain.values(1, "new"))
    assert plain.take_back(act).clean
    assert plain.dump() == before


def test_09_a_row_changed_many_times_in_a_step_is_one_change(plain):
    before = plain.dump()
    act = plain.act(*(f"UPDATE item SET name = 'n{number}' WHERE id = 1" for number in range(20)))
    (change,) = plain.written.changes
    assert (change.before, change.after) == (plain.values(1, "one"), plain.values(1, "n19"))
    assert plain.take_back(act).clean
    assert plain.dump() == before


def test_09_an_insert_that_is_deleted_in_the_same_step_is_nothing(plain):
    plain.act(
        "INSERT INTO item VALUES (3, 'x')",
        "UPDATE item SET id = 4 WHERE id = 3",
        "DELETE FROM item WHERE id = 4",
    )
    assert plain.written.changes == []
    plain.act("UPDATE item SET name = 'x' WHERE id = 2", "DELETE FROM item WHERE id = 2")
    (change,) = plain.written.changes
    assert (change.before, change.after) == (plain.values(2, "two"), None)
