"""The schema changed between an act and its undo: by name it is done right, or told."""

import pytest


@pytest.fixture
def skills(engine):
    engine.schema(
        "CREATE TABLE skill (id INTEGER PRIMARY KEY, name TEXT, level INTEGER)",
        "INSERT INTO skill VALUES (1, 'go', 3), (2, 'rust', 2)",
    )
    return engine


def test_a_column_that_was_added_has_its_default(skills):
    acts = [
        skills.act("DELETE FROM skill WHERE id = 2"),
        skills.act("UPDATE skill SET level = 9 WHERE id = 1"),
        skills.act("INSERT INTO skill VALUES (3, 'c', 1)"),
    ]
    skills.schema("ALTER TABLE skill ADD COLUMN lang TEXT NOT NULL DEFAULT 'en'")
    skills.stranger("UPDATE skill SET lang = 'de' WHERE id = 1")
    assert skills.take_back(*acts).clean
    assert skills.stranger("SELECT * FROM skill ORDER BY id") == [(1, "go", 3, "de"), (2, "rust", 2, "en")]


def test_a_row_with_work_in_an_added_column_is_not_taken_away(skills):
    act = skills.act("INSERT INTO skill VALUES (3, 'c', 1)")
    skills.schema("ALTER TABLE skill ADD COLUMN lang TEXT DEFAULT 'en'")
    skills.stranger("UPDATE skill SET lang = 'de' WHERE id = 3")
    (conflict,) = skills.conflicts(skills.take_back(act))
    assert conflict.theirs == {"lang": "de"}


@pytest.mark.parametrize("change", ["DROP COLUMN level", "RENAME COLUMN level TO grade"])
def test_a_column_that_is_gone_is_a_conflict_only_where_it_is_needed(skills, change):
    needs = skills.act("UPDATE skill SET level = 9 WHERE id = 1")
    other = skills.act("UPDATE skill SET name = 'Go' WHERE id = 1")
    deleted = skills.act("DELETE FROM skill WHERE id = 2")
    skills.schema(f"ALTER TABLE skill {change}")
    assert [e.column for e in skills.conflicts(skills.take_back(needs))] == ["level"]
    assert "level" in skills.conflicts(skills.take_back(deleted))[0].reason
    assert skills.take_back(other).clean
    assert skills.stranger("SELECT name FROM skill") == [("go",)]


def test_a_table_that_is_gone_is_told(skills):
    act = skills.act("UPDATE skill SET level = 9 WHERE id = 1")
    skills.schema("ALTER TABLE skill RENAME TO ability")
    assert [(e.table, e.action) for e in skills.conflicts(skills.take_back(act))] == [("skill", "gone")]


def test_columns_in_another_order_are_found_by_name(skills):
    before = skills.stranger("SELECT id, name, level FROM skill ORDER BY id")
    acts = [
        skills.act("UPDATE skill SET level = 9, name = 'x'"),
        skills.act("DELETE FROM skill WHERE id = 1"),
    ]
    skills.schema(
        "CREATE TABLE other (level INTEGER, name TEXT, id INTEGER PRIMARY KEY)",
        "INSERT INTO other SELECT level, name, id FROM skill",
        "DROP TABLE skill",
        "ALTER TABLE other RENAME TO skill",
    )
    assert skills.take_back(*acts).clean
    assert skills.stranger("SELECT id, name, level FROM skill ORDER BY id") == before


def test_a_type_or_a_key_that_is_another_is_a_conflict(skills):
    act = skills.act("UPDATE skill SET level = 9 WHERE id = 1")
    skills.schema(
        "DROP TABLE skill",
        "CREATE TABLE skill (id INTEGER PRIMARY KEY, name TEXT, level TEXT)",
        "INSERT INTO skill VALUES (1, 'go', '9')",
    )
    assert [e.column for e in skills.conflicts(skills.take_back(act))] == ["level"]
    skills.schema("DROP TABLE skill", "CREATE TABLE skill (id INTEGER, name TEXT PRIMARY KEY, level INTEGER)")
    assert "key" in skills.conflicts(skills.take_back(act))[0].reason


def test_a_table_that_a_stranger_made_anew_is_captured(sqlite):
    sqlite.schema("CREATE TABLE t (id INTEGER PRIMARY KEY, v)")
    sqlite.act("INSERT INTO t VALUES (1, 'a')")
    for statements in (
        ("DROP TABLE t", "CREATE TABLE t (id INTEGER PRIMARY KEY, v)"),
        ("ALTER TABLE t RENAME TO other", "CREATE TABLE t (id INTEGER PRIMARY KEY, v)"),
        ("ALTER TABLE t ADD COLUMN w",),
        ("DROP TABLE t", "CREATE TABLE t (v, id INTEGER PRIMARY KEY, w)"),
        ("VACUUM",),
        ("CREATE TABLE another (id INTEGER PRIMARY KEY)",),
        ("CREATE TRIGGER trg AFTER INSERT ON t BEGIN INSERT INTO another VALUES (NEW.id + 100); END",),
    ):
        sqlite.schema(*statements)
        before = sqlite.dump()
        act = sqlite.act("INSERT INTO t (id, v) VALUES (7, 'b')")
        assert len(sqlite.written.changes) == (2 if "TRIGGER" in statements[0] else 1), statements
        assert sqlite.take_back(act).clean
        assert sqlite.dump() == before
