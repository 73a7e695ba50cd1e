"""Schema drift, cases 43 and 44: the schema changed between the step and its undo."""

import pytest

from takeback.errors import ConflictError


@pytest.fixture
def skills(engine):
    engine.schema("CREATE TABLE skill (id INTEGER PRIMARY KEY, name TEXT, level INTEGER)")
    engine.schema("INSERT INTO skill VALUES (1, 'go', 3), (2, 'rust', 2)")
    return engine


def test_43_an_added_column_has_its_default_in_what_comes_back(skills):
    acts = [
        skills.act("DELETE FROM skill WHERE id = 2"),
        skills.act("UPDATE skill SET level = 9 WHERE id = 1"),
    ]
    skills.schema("ALTER TABLE skill ADD COLUMN lang TEXT NOT NULL DEFAULT 'en'")
    skills.stranger("UPDATE skill SET lang = 'de' WHERE id = 1")
    assert skills.take_back(*acts).clean
    assert skills.stranger("SELECT * FROM skill ORDER BY id") == [(1, "go", 3, "de"), (2, "rust", 2, "en")]
    assert skills.take_back(skills.undone[-1]).clean
    assert skills.stranger("SELECT * FROM skill") == [(1, "go", 9, "de")]


@pytest.mark.parametrize("change", ["DROP COLUMN level", "RENAME COLUMN level TO grade"])
def test_43_a_column_that_is_gone_is_a_conflict_only_where_it_is_needed(skills, change):
    needs = skills.act("UPDATE skill SET level = 9 WHERE id = 1")
    other = skills.act("UPDATE skill SET name = 'Go' WHERE id = 1")
    deleted = skills.act("DELETE FROM skill WHERE id = 2")
    skills.schema(f"ALTER TABLE skill {change}")
    before = skills.dump()
    assert [each.column for each in skills.conflicts(skills.take_back(needs))] == ["level"]
    assert "level" in skills.conflicts(skills.take_back(deleted))[0].reason
    assert skills.dump() == before
    assert skills.take_back(other).clean
    assert skills.stranger("SELECT name FROM skill") == [("go",)]


def test_43_a_renamed_table_is_told_and_never_taken_for_done(skills):
    act = skills.act("UPDATE skill SET level = 9 WHERE id = 1")
    skills.schema("ALTER TABLE skill RENAME TO ability")
    (told,) = skills.conflicts(skills.take_back(act))
    assert (told.table, told.action) == ("skill", "gone")
    assert skills.entries(act)[0].undone_in is None
    skills.schema("ALTER TABLE ability RENAME TO skill")
    assert skills.take_back(act).clean
    assert skills.stranger("SELECT level FROM skill WHERE id = 1") == [(3,)]


def test_43_a_column_of_another_type_is_a_conflict_or_the_same_value(skills):
    """Where the values of both types are written alike it is still another type: it is told."""
    act = skills.act("UPDATE skill SET level = 9 WHERE id = 1")
    if skills.name == "postgresql":
        skills.schema("ALTER TABLE skill ALTER COLUMN level TYPE numeric(9,2)")
    else:
        skills.schema(
            "CREATE TABLE other (id INTEGER PRIMARY KEY, name TEXT, level TEXT)",
            "INSERT INTO other SELECT * FROM skill",
            "DROP TABLE skill",
            "ALTER TABLE other RENAME TO skill",
        )
    before = skills.dump()
    assert [each.column for each in skills.conflicts(skills.take_back(act))] == ["level"]
    assert skills.dump() == before


def test_43_columns_in_another_order_are_known_by_name(skills):
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


def test_44_a_migration_in_the_middle_of_a_chain(skills):
    """Acts before and after it are taken back together, newest first."""
    acts = [skills.act("UPDATE skill SET level = 9 WHERE id = 1")]
    skills.schema("ALTER TABLE skill ADD COLUMN lang TEXT DEFAULT 'en'")
    acts.append(skills.act("UPDATE skill SET level = 10, lang = 'fr' WHERE id = 1"))
    acts.append(skills.act("INSERT INTO skill VALUES (3, 'c', 1, 'de')"))
    assert skills.take_back(*acts).clean
    assert skills.stranger("SELECT * FROM skill ORDER BY id") == [(1, "go", 3, "en"), (2, "rust", 2, "en")]


def test_44_a_value_of_an_enum_that_is_no_more_is_a_conflict_and_nothing_is_done(postgresql):
    postgresql.schema(
        "CREATE TYPE mood AS ENUM ('sad', 'fine')",
        "CREATE TABLE day (id int PRIMARY KEY, mood mood, note text)",
        "INSERT INTO day VALUES (1, 'sad', 'n')",
    )
    act = postgresql.act("UPDATE day SET mood = 'fine', note = 'x'")
    postgresql.schema(
        "ALTER TYPE mood RENAME TO old_mood",
        "CREATE TYPE mood AS ENUM ('fine', 'glad')",
        "ALTER TABLE day ALTER COLUMN mood TYPE mood USING mood::text::mood",
        "DROP TYPE old_mood",
    )
    before = postgresql.dump()
    found = postgresql.conflicts(postgresql.take_back(act))
    assert [(each.table, each.key) for each in found] == [("day", ("1",))]
    assert postgresql.dump() == before


def test_44_a_type_made_anew_under_its_name_is_written_and_given_back(postgresql):
    """Also in a session that has captured values of the old one."""
    postgresql.schema(
        "CREATE TYPE mood AS ENUM ('sad', 'fine')",
        "CREATE TABLE day (id int PRIMARY KEY, mood mood, note text)",
        "INSERT INTO day VALUES (1, 'fine', 'n')",
    )
    acts = [postgresql.act("UPDATE day SET note = 'x'")]
    postgresql.schema(
        "ALTER TYPE mood RENAME TO old_mood",
        "CREATE TYPE mood AS ENUM ('fine', 'glad')",
        "ALTER TABLE day ALTER COLUMN mood TYPE mood USING mood::text::mood",
        "DROP TYPE old_mood",
    )
    with pytest.raises(ConflictError, match=r"rows\.changed") as caught:
        postgresql.act("UPDATE day SET mood = 'glad', note = 'y'")
    assert caught.value.retryable
    acts.append(postgresql.act("UPDATE day SET mood = 'glad', note = 'y'"))
    assert postgresql.take_back(*acts).clean
    assert postgresql.stranger("SELECT mood::text, note FROM day") == [("fine", "n")]


def test_44_a_value_that_a_narrower_column_does_not_take_is_a_conflict(postgresql):
    postgresql.schema("CREATE DOMAIN code AS text", "CREATE TABLE t (id int PRIMARY KEY, c code)")
    postgresql.schema("INSERT INTO t VALUES (1, 'long code')")
    act = postgresql.act("UPDATE t SET c = 'x'")
    postgresql.schema("ALTER DOMAIN code ADD CONSTRAINT short CHECK (length(value) < 3)")
    before = postgresql.dump()
    (conflict,) = postgresql.conflicts(postgresql.take_back(act))
    assert conflict.constraint == "short"
    assert postgresql.dump() == before


def test_44_a_table_dropped_and_made_anew_is_judged_by_its_rows(skills):
    acts = [
        skills.act("UPDATE skill SET level = 9 WHERE id = 1"),
        skills.act("DELETE FROM skill WHERE id = 2"),
    ]
    skills.schema(
        "DROP TABLE skill",
        "CREATE TABLE skill (id INTEGER PRIMARY KEY, name TEXT, level INTEGER)",
        "INSERT INTO skill VALUES (1, 'another', 9)",
    )
    assert skills.take_back(*acts).clean
    assert skills.stranger("SELECT * FROM skill ORDER BY id") == [(1, "another", 3), (2, "rust", 2)]
    more = skills.act("UPDATE skill SET name = 'x' WHERE id = 1")
    assert len(skills.written.changes) == 1
    skills.schema("DROP TABLE skill", "CREATE TABLE skill (name TEXT PRIMARY KEY, id INTEGER, level INTEGER)")
    assert "key" in skills.conflicts(skills.take_back(more))[0].reason
