"""Triggers of the person's own: what they wrote is part of an act, and they do not spoil what is given
back."""

import pytest

from takeback.errors import RefusedError
from takeback_acts.rows.rules import Rules

NOTE = "CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT, updated INTEGER)"
TOUCH = (
    "CREATE TRIGGER touch AFTER UPDATE ON note WHEN NEW.updated IS OLD.updated"
    " BEGIN UPDATE note SET updated = OLD.updated + 1 WHERE id = NEW.id; END"
)
INSISTS = (
    "CREATE TRIGGER touch AFTER UPDATE ON note WHEN NEW.updated < 1000"
    " BEGIN UPDATE note SET updated = (SELECT n FROM clock) WHERE id = NEW.id; END"
)
LOG = "CREATE TABLE log (id INTEGER PRIMARY KEY, what TEXT)"
LOGS = "CREATE TRIGGER logs AFTER UPDATE ON note BEGIN INSERT INTO log (what) VALUES (NEW.body); END"


def test_a_time_that_a_trigger_sets_is_as_it_was(sqlite):
    sqlite.schema(NOTE, TOUCH, "INSERT INTO note VALUES (1, 'a', 100)")
    before = sqlite.dump()
    act = sqlite.act("UPDATE note SET body = 'b'")
    assert sqlite.stranger("SELECT * FROM note") == [(1, "b", 101)]
    assert len(sqlite.written.changes) == 1
    assert sqlite.take_back(act).clean
    assert sqlite.dump() == before


def test_a_column_that_a_trigger_insists_on_is_told(sqlite):
    sqlite.schema(NOTE, "CREATE TABLE clock (n)", "INSERT INTO clock VALUES (5000)", INSISTS)
    sqlite.schema("INSERT INTO note VALUES (1, 'a', 100)")
    act = sqlite.act("UPDATE note SET body = 'b'")
    taken = sqlite.take_back(act)
    assert taken.clean
    assert [(e.column, e.action, e.reason) for e in taken.effects if e.reason] == [
        ("updated", "merge", "a trigger keeps it")
    ]
    assert sqlite.stranger("SELECT * FROM note") == [(1, "a", 5000)]


def test_what_a_trigger_logged_of_an_act_goes_with_it_and_the_undo_logs_nothing(sqlite):
    sqlite.schema(NOTE, LOG, LOGS, "INSERT INTO note VALUES (1, 'a', 1)", "INSERT INTO log VALUES (1, 'x')")
    before = sqlite.dump()
    act = sqlite.act("UPDATE note SET body = 'b'")
    assert len(sqlite.written.changes) == 2
    assert sqlite.take_back(act).clean
    assert sqlite.dump() == before


def test_a_table_outside_is_neither_journaled_nor_given_back(sqlite):
    sqlite.schema(NOTE, "CREATE TABLE log (what TEXT)", LOGS, "INSERT INTO note VALUES (1, 'a', 1)")
    sqlite.rules = Rules(outside=frozenset({"log"}))
    act = sqlite.act("UPDATE note SET body = 'b'")
    assert len(sqlite.written.changes) == 1
    assert sqlite.take_back(act).clean
    assert sqlite.stranger("SELECT what FROM log") == [("b",), ("a",)]


def test_a_trigger_that_writes_to_a_table_without_a_key_is_refused(sqlite):
    sqlite.schema(NOTE, "CREATE TABLE log (what TEXT)", LOGS, "INSERT INTO note VALUES (1, 'a', 1)")
    with pytest.raises(RefusedError) as caught:
        sqlite.act("UPDATE note SET body = 'b'")
    assert caught.value.code == "rows.unjournaled"
    assert "log" in caught.value.message
    assert sqlite.stranger("SELECT body FROM note") == [("a",)]


def test_a_total_that_a_trigger_keeps_is_right_again(sqlite):
    sqlite.schema(
        "CREATE TABLE list (id INTEGER PRIMARY KEY, n INTEGER)",
        "CREATE TABLE item (id INTEGER PRIMARY KEY, list INTEGER)",
        "CREATE TRIGGER more AFTER INSERT ON item BEGIN UPDATE list SET n = n + 1 WHERE id = NEW.list; END",
        "CREATE TRIGGER less AFTER DELETE ON item BEGIN UPDATE list SET n = n - 1 WHERE id = OLD.list; END",
        "INSERT INTO list VALUES (1, 0)",
    )
    sqlite.stranger("INSERT INTO item VALUES (1, 1)")
    before = sqlite.dump()
    act = sqlite.act("INSERT INTO item VALUES (2, 1), (3, 1)", "DELETE FROM item WHERE id = 1")
    assert sqlite.take_back(act).clean
    assert sqlite.dump() == before


def test_a_before_trigger_that_updates_the_row_itself_is_followed(sqlite):
    sqlite.schema(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b)",
        "CREATE TRIGGER t_b BEFORE UPDATE ON t WHEN NEW.b IS NOT 'trg'"
        " BEGIN UPDATE t SET b = 'trg' WHERE id = OLD.id; END",
        "INSERT INTO t VALUES (1, 1, 1)",
    )
    act = sqlite.act("UPDATE t SET a = 2")
    assert [(c.before, c.after) for c in sqlite.written.changes] == [((1, 1, 1), (1, 2, "trg"))]
    assert sqlite.take_back(act).clean
    assert sqlite.stranger("SELECT a, b IN (1, 'trg') FROM t") == [(1, 1)]


def test_what_is_written_through_a_view_is_journaled_in_its_table(sqlite):
    sqlite.schema(
        NOTE,
        "CREATE VIEW short AS SELECT id, body FROM note",
        "CREATE TRIGGER short_i INSTEAD OF INSERT ON short"
        " BEGIN INSERT INTO note VALUES (NEW.id, NEW.body, 0); END",
    )
    act = sqlite.act("INSERT INTO short VALUES (1, 'a')")
    assert sqlite.take_back(act).clean
    assert sqlite.stranger("SELECT * FROM note") == []


def test_an_index_of_full_text_stays_true(sqlite):
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
    assert sqlite.take_back(act).clean
    assert sqlite.stranger("SELECT rowid FROM words WHERE words MATCH 'alpha'") == [(1,)]
    assert sqlite.stranger("SELECT rowid FROM words WHERE words MATCH 'beta'") == []
    sqlite.stranger("INSERT INTO words (words) VALUES ('integrity-check')")
    assert "virtual table" in sqlite.ledger.catalog.refused["words_data"]


def test_a_trigger_that_rolls_back_everything_does_no_harm(sqlite):
    sqlite.schema(
        NOTE,
        "INSERT INTO note VALUES (1, 'a', 1)",
        "CREATE TRIGGER no BEFORE UPDATE ON note WHEN NEW.body = 'a' BEGIN SELECT RAISE(ROLLBACK, 'no'); END",
    )
    act = sqlite.act("UPDATE note SET body = 'b'")
    with pytest.raises(Exception, match="rolled_back"):
        sqlite.take_back(act)
    assert sqlite.stranger("SELECT body FROM note") == [("b",)]


def test_a_trigger_of_a_view_is_not_made_to_run_again(sqlite):
    sqlite.schema(
        NOTE,
        "CREATE VIEW short AS SELECT id, body FROM note",
        "CREATE TRIGGER short_i INSTEAD OF INSERT ON short BEGIN"
        " INSERT INTO short VALUES (NEW.id + 1, 'again');"
        " REPLACE INTO note VALUES (NEW.id, NEW.body, 0); END",
        "INSERT INTO note VALUES (1, 'old', 1)",
    )
    before = sqlite.dump()
    act = sqlite.act("INSERT INTO short VALUES (1, 'a')")
    assert sqlite.stranger("SELECT * FROM note") == [(1, "a", 0)]
    assert sqlite.take_back(act).clean
    assert sqlite.dump() == before
