"""What an act did is given back, and what others did since is not touched."""

import pytest

from takeback.errors import ConflictError
from takeback_acts.rows.rules import Rules

SKILL = "CREATE TABLE skill (id INTEGER PRIMARY KEY, name TEXT NOT NULL, level INTEGER, note TEXT)"
ROWS = "INSERT INTO skill VALUES (1, 'go', 3, NULL), (2, 'rust', 2, NULL)"


@pytest.fixture
def skills(engine):
    engine.schema(SKILL, ROWS)
    return engine


def test_what_an_act_did_is_taken_back_and_done_again(skills):
    before = skills.dump()
    first = skills.act("INSERT INTO skill VALUES (3, 'c', 1, '')", "UPDATE skill SET level = 9 WHERE id = 1")
    second = skills.act("DELETE FROM skill WHERE id = 2", "UPDATE skill SET name = 'Go' WHERE id = 1")
    after = skills.dump()
    assert skills.take_back(first, second).clean
    assert skills.dump() == before
    assert skills.take_back(skills.undone[-1]).clean
    assert skills.dump() == after
    assert skills.take_back(first, second).clean
    assert skills.dump() == before


def test_another_column_that_changed_since_is_kept(skills):
    act = skills.act("UPDATE skill SET level = 9 WHERE id = 1")
    skills.stranger("UPDATE skill SET note = 'theirs' WHERE id = 1")
    taken = skills.take_back(act)
    assert [(e.key, e.column, e.action) for e in taken.effects] == [(skills.key(1), "level", "merge")]
    assert skills.stranger("SELECT level, note FROM skill WHERE id = 1") == [(3, "theirs")]


def test_the_same_column_that_changed_since_is_a_conflict(skills):
    act = skills.act("UPDATE skill SET level = 9 WHERE id = 1")
    skills.stranger("UPDATE skill SET level = 5 WHERE id = 1")
    (conflict,) = skills.conflicts(skills.take_back(act))
    assert (conflict.table, conflict.key, conflict.column) == ("skill", skills.key(1), "level")
    assert [str(each) for each in (conflict.base, conflict.ours, conflict.theirs)] == ["9", "3", "5"]
    assert skills.stranger("SELECT level FROM skill WHERE id = 1") == [(5,)]


def test_a_conflict_in_one_row_leaves_all_rows_as_they_are(skills):
    act = skills.act("UPDATE skill SET level = 9")
    skills.stranger("UPDATE skill SET level = 5 WHERE id = 1")
    before = skills.dump()
    assert not skills.take_back(act).clean
    assert skills.dump() == before


def test_by_force_a_conflict_is_overwritten(skills):
    act = skills.act("UPDATE skill SET level = 9 WHERE id = 1", "INSERT INTO skill VALUES (3, 'c', 1, '')")
    skills.stranger("UPDATE skill SET level = 5")
    assert skills.take_back(act, force=True).clean
    assert skills.stranger("SELECT id, level FROM skill ORDER BY id") == [(1, 3), (2, 5)]


def test_what_has_its_old_value_again_is_done_already(skills):
    act = skills.act("UPDATE skill SET level = 9 WHERE id = 1")
    skills.stranger("UPDATE skill SET level = 3 WHERE id = 1")
    taken = skills.take_back(act)
    assert [(e.column, e.action, e.reason) for e in taken.effects] == [("level", "skip", "unchanged")]
    assert taken.changes == []


def test_an_inserted_row_that_was_edited_is_a_conflict(skills):
    act = skills.act("INSERT INTO skill VALUES (3, 'c', 1, '')")
    skills.stranger("UPDATE skill SET note = 'polished' WHERE id = 3")
    (conflict,) = skills.conflicts(skills.take_back(act))
    assert (conflict.column, conflict.theirs) == ("", {"note": "polished"})


def test_an_inserted_row_that_is_gone_is_done_already(skills):
    act = skills.act("INSERT INTO skill VALUES (3, 'c', 1, '')")
    skills.stranger("DELETE FROM skill WHERE id = 3")
    assert [e.action for e in skills.take_back(act).effects] == ["skip"]


def test_an_updated_row_that_is_gone_is_told(skills):
    act = skills.act("UPDATE skill SET level = 9 WHERE id = 1")
    skills.stranger("DELETE FROM skill WHERE id = 1")
    assert [e.action for e in skills.conflicts(skills.take_back(act))] == ["gone"]


def test_a_deleted_row_whose_key_is_in_use_again_is_a_conflict(skills):
    act = skills.act("DELETE FROM skill WHERE id = 2")
    skills.stranger("INSERT INTO skill VALUES (2, 'zig', 1, NULL)")
    (conflict,) = skills.conflicts(skills.take_back(act))
    assert conflict.ours["name"] == "rust"
    assert conflict.theirs["name"] == "zig"


def test_acts_on_one_row_are_taken_back_newest_first(skills):
    acts = [skills.act(f"UPDATE skill SET level = {level} WHERE id = 1") for level in (4, 5, 6)]
    assert skills.take_back(*acts).clean
    assert skills.stranger("SELECT level FROM skill WHERE id = 1") == [(3,)]


def test_an_older_act_alone_is_a_conflict_with_the_newer(skills):
    first = skills.act("UPDATE skill SET level = 4 WHERE id = 1")
    skills.act("UPDATE skill SET level = 5 WHERE id = 1")
    assert not skills.take_back(first).clean


def test_a_key_that_the_act_changed_is_changed_back(skills):
    act = skills.act("UPDATE skill SET id = 30, level = 1 WHERE id = 1")
    skills.stranger("UPDATE skill SET note = 'theirs' WHERE id = 30")
    assert skills.take_back(act).clean
    assert skills.stranger("SELECT * FROM skill WHERE id = 1") == [(1, "go", 3, "theirs")]


def test_a_key_that_somebody_else_has_by_now_is_a_conflict(skills):
    act = skills.act("UPDATE skill SET id = 30 WHERE id = 1")
    skills.stranger("INSERT INTO skill VALUES (1, 'zig', 1, NULL)")
    assert [e.reason for e in skills.conflicts(skills.take_back(act))] == ["another row has the key it had"]


def test_rows_that_exchanged_their_keys_exchange_them_back(skills):
    before = skills.dump()
    act = skills.act(
        "UPDATE skill SET id = 99 WHERE id = 1",
        "UPDATE skill SET id = 1 WHERE id = 2",
        "UPDATE skill SET id = 2 WHERE id = 99",
    )
    assert len(skills.written.changes) == 2
    assert skills.take_back(act).clean
    assert skills.dump() == before


def test_a_row_that_moved_goes_back_to_where_the_act_put_another(skills):
    before = skills.dump()
    act = skills.act("UPDATE skill SET id = 30 WHERE id = 1", "INSERT INTO skill VALUES (1, 'zig', 1, NULL)")
    assert skills.take_back(act).clean
    assert skills.dump() == before


def test_a_row_that_came_to_the_key_of_another_is_done_again(skills):
    before = skills.dump()
    acts = [
        skills.act("INSERT INTO skill VALUES (3, 'c', 1, '')"),
        skills.act("DELETE FROM skill WHERE id = 1", "UPDATE skill SET id = 1 WHERE id = 3"),
    ]
    after = skills.dump()
    assert skills.take_back(*acts).clean
    assert skills.dump() == before
    assert skills.take_back(skills.undone[-1]).clean
    assert skills.dump() == after


def test_a_row_changed_many_times_within_an_act_is_one_change(skills):
    skills.act(*(f"UPDATE skill SET level = {level} WHERE id = 1" for level in range(20, 30)))
    assert [(c.before[2], c.after[2]) for c in skills.written.changes] == [skills.values(3, 29)]


def test_what_comes_to_nothing_is_not_journaled(skills):
    act = skills.act(
        "INSERT INTO skill VALUES (3, 'c', 1, '')",
        "DELETE FROM skill WHERE id = 3",
        "DELETE FROM skill WHERE id = 1",
        "INSERT INTO skill VALUES (1, 'go', 3, NULL)",
        "UPDATE skill SET level = level",
    )
    assert skills.written.changes == []
    assert skills.entries(act) == []


def test_a_part_of_an_act_is_taken_back_by_itself(skills):
    act = skills.act("UPDATE skill SET level = 9, note = 'x'")
    part = {("skill", skills.key(1), "level")}
    taken = skills.take_back(act, only=part)
    assert taken.partial
    assert skills.stranger("SELECT id, level, note FROM skill ORDER BY id") == [(1, 3, "x"), (2, 9, "x")]
    assert skills.entries(act)[0].undone_in is None
    assert skills.take_back(act).clean
    assert skills.stranger("SELECT level, note FROM skill ORDER BY id") == [(3, None), (2, None)]


def test_who_takes_back_what_is_taken_back_already_is_told(skills):
    act = skills.act("UPDATE skill SET level = 9 WHERE id = 1")
    skills.take_back(act)
    skills.stranger("UPDATE skill SET level = 9 WHERE id = 1")
    with pytest.raises(ConflictError) as caught:
        skills.take_back(act)
    assert caught.value.code == "rows.undone"
    assert skills.stranger("SELECT level FROM skill WHERE id = 1") == [(9,)]


def test_the_journal_knows_what_is_taken_back(skills):
    act = skills.act("UPDATE skill SET level = 9 WHERE id = 1")
    skills.take_back(act)
    undo = skills.undone[-1]
    assert skills.entries(act)[0].undone_in == undo
    skills.take_back(undo)
    assert skills.entries(act)[0].undone_in is None
    assert skills.entries(undo)[0].undone_in == skills.undone[-1]
    skills.take_back(skills.undone[-1])
    assert skills.entries(act)[0].undone_in == undo
    assert skills.stranger("SELECT level FROM skill WHERE id = 1") == [(3,)]


def test_old_entries_are_forgotten_but_for_the_newest(skills):
    acts = [skills.act(f"UPDATE skill SET level = {level}") for level in (7, 8)]
    skills.dialect.begin(skills.link)
    count = skills.ledger.expire(skills.link, "2027")
    skills.dialect.commit(skills.link)
    assert count == 1
    assert [each.id for each in skills.entries(*acts)] == [acts[1]]


def test_entries_of_a_group_are_found_from_a_number_on_and_while_they_live(skills):
    acts = [
        skills.act(f"UPDATE skill SET level = {level}", grp=grp)
        for level, grp in ((7, "a"), (8, "b"), (9, "a"))
    ]
    ledger, link = skills.ledger, skills.link
    skills.take_back(acts[2])
    skills.dialect.begin(link)
    first = ledger.entries(link, ids=acts[:1])[0].seq
    assert [each.id for each in ledger.entries(link, grp="a")] == [acts[0]]
    assert [each.id for each in ledger.entries(link, grp="a", live=False)] == [acts[2], acts[0]]
    assert [each.id for each in ledger.entries(link, since_seq=first + 1)] == [acts[1]]
    skills.dialect.rollback(link)


def test_a_preview_tells_what_taking_back_does_and_does_nothing(skills):
    acts = [
        skills.act("UPDATE skill SET level = 9 WHERE id = 1", "INSERT INTO skill VALUES (3, 'c', 1, '')"),
        skills.act("DELETE FROM skill WHERE id = 2", "UPDATE skill SET note = 'n' WHERE id = 1"),
    ]
    skills.stranger("UPDATE skill SET name = 'Go' WHERE id = 1")
    before = skills.dump()
    seen = skills.preview(*acts)
    assert skills.dump() == before
    taken = skills.take_back(*acts)
    assert (seen.effects, seen.clean) == (taken.effects, True)


def test_columns_that_belong_together_conflict_together(engine):
    engine.schema(
        "CREATE TABLE price (id INTEGER PRIMARY KEY, amount INTEGER, currency TEXT, note TEXT)",
        "INSERT INTO price VALUES (1, 10, 'EUR', '')",
    )
    engine.rules = Rules(groups={"price": (frozenset({"amount", "currency"}),)})
    act = engine.act("UPDATE price SET amount = 12, note = 'x'")
    engine.stranger("UPDATE price SET currency = 'USD'")
    assert [e.column for e in engine.conflicts(engine.take_back(act))] == ["amount"]
    engine.stranger("UPDATE price SET currency = 'EUR', amount = 10")
    assert engine.take_back(act).clean


def test_of_a_counter_the_difference_is_given_back(engine):
    engine.schema(
        "CREATE TABLE stock (id INTEGER PRIMARY KEY, n INTEGER)", "INSERT INTO stock VALUES (1, 10)"
    )
    engine.rules = Rules(deltas={"stock": frozenset({"n"})})
    act = engine.act("UPDATE stock SET n = n + 5")
    engine.stranger("UPDATE stock SET n = n + 100")
    assert engine.take_back(act).clean
    assert engine.stranger("SELECT n FROM stock") == [(110,)]


def test_what_is_derived_is_never_a_conflict(engine):
    engine.schema(
        "CREATE TABLE doc (id INTEGER PRIMARY KEY, body TEXT, words INTEGER)",
        "INSERT INTO doc VALUES (1, 'a', 1)",
    )
    engine.rules = Rules(derived={"doc": frozenset({"words"})})
    act = engine.act("UPDATE doc SET body = 'a b', words = 2", "INSERT INTO doc VALUES (2, 'c', 1)")
    engine.stranger("UPDATE doc SET words = 77")
    assert engine.take_back(act).clean
    assert engine.stranger("SELECT * FROM doc") == [(1, "a", 77)]
