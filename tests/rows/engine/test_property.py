"""Whatever acts do, taking them back newest first leaves the database as it was, and strangers' work where it
is."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rows.engines import SqliteEngine

TEXT = st.sampled_from(["a", "A", "b", " b", ""])
KEY = st.sampled_from([1, 2, 3, 1.0, "1", "a", "A", b"1"])
WORTH = st.one_of(st.none(), st.integers(0, 2), st.just(1.0), TEXT)
NUMBER = st.integers(1, 4)

SCHEMA = (
    "CREATE TABLE loose (k PRIMARY KEY, v, w)",
    "CREATE TABLE fold (k TEXT COLLATE NOCASE PRIMARY KEY, v) WITHOUT ROWID",
    "CREATE TABLE parent (id INTEGER PRIMARY KEY, u UNIQUE, v)",
    "CREATE TABLE cascades (id INTEGER PRIMARY KEY, up INTEGER REFERENCES parent (id) ON DELETE CASCADE"
    " ON UPDATE CASCADE, v)",
    "CREATE TABLE nulls (id INTEGER PRIMARY KEY, up INTEGER REFERENCES parent (id) ON DELETE SET NULL)",
    "CREATE TABLE tree (id INTEGER PRIMARY KEY, up INTEGER REFERENCES tree (id) ON DELETE CASCADE, v)",
    "CREATE UNIQUE INDEX part ON loose (w) WHERE w > 0",
)
TRIGGERS = (
    "CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, what)",
    "CREATE TRIGGER log_p AFTER UPDATE ON parent BEGIN INSERT INTO log (what) VALUES (OLD.v); END",
    "CREATE TRIGGER log_d AFTER DELETE ON tree BEGIN INSERT INTO log (what) VALUES (OLD.v); END",
)


def _statement(verb, sql, *values):
    return st.tuples(st.just(sql), st.tuples(*values)).map(lambda pair: (verb + pair[0], pair[1]))


OPERATIONS = st.one_of(
    *(
        each
        for conflict in ("INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE")
        for each in (
            _statement(conflict, " INTO loose VALUES (?, ?, ?)", KEY, WORTH, WORTH),
            _statement(conflict, " INTO fold VALUES (?, ?)", TEXT, WORTH),
            _statement(conflict, " INTO parent VALUES (?, ?, ?)", NUMBER, WORTH, WORTH),
            _statement(conflict, " INTO cascades VALUES (?, ?, ?)", NUMBER, NUMBER, WORTH),
            _statement(conflict, " INTO nulls VALUES (?, ?)", NUMBER, NUMBER),
            _statement(conflict, " INTO tree VALUES (?, ?, ?)", NUMBER, NUMBER, WORTH),
        )
    ),
    _statement("UPDATE", " loose SET k = ?, v = ? WHERE k = ?", KEY, WORTH, KEY),
    _statement("UPDATE OR REPLACE", " loose SET w = ?", WORTH),
    _statement("UPDATE", " fold SET k = ? WHERE k = ?", TEXT, TEXT),
    _statement("UPDATE", " parent SET u = ?, v = ? WHERE id = ?", WORTH, WORTH, NUMBER),
    _statement("UPDATE OR REPLACE", " parent SET u = ? WHERE id = ?", WORTH, NUMBER),
    _statement("UPDATE", " parent SET id = ? WHERE id = ?", NUMBER, NUMBER),
    _statement("UPDATE", " tree SET up = ?, v = ? WHERE id = ?", NUMBER, WORTH, NUMBER),
    _statement("UPDATE", " cascades SET v = ?", WORTH),
    _statement("DELETE", " FROM parent WHERE id = ?", NUMBER),
    _statement("DELETE", " FROM tree WHERE id = ?", NUMBER),
    _statement("DELETE", " FROM loose WHERE k = ?", KEY),
    _statement("DELETE", " FROM fold WHERE v IS ?", WORTH),
)
ACTS = st.lists(st.lists(OPERATIONS, min_size=1, max_size=4), min_size=1, max_size=6)
TRIES = settings(max_examples=60, suppress_health_check=list(HealthCheck))


def _open(folder, triggers):
    made = SqliteEngine(folder)
    made.schema(*SCHEMA, *(TRIGGERS if triggers else ()))
    made.schema("INSERT INTO parent VALUES (1, 1, 'p'), (2, 2, 'q')", "INSERT INTO tree VALUES (1, NULL, 0)")
    return made


def _run(engine, statements):
    """One act of those of the statements that the database accepts."""

    def body(link):
        for sql, params in statements:
            engine.dialect.savepoint(link, "one")
            try:
                link.execute(sql, params)
            except engine.errors:
                engine.dialect.rollback_to(link, "one")
            else:
                engine.dialect.release(link, "one")

    return engine.act_of(body)


@pytest.mark.parametrize("triggers", [False, True])
def test_after_taking_everything_back_the_database_is_the_same_to_the_byte(tmp_path_factory, triggers):
    @TRIES
    @given(ACTS, st.booleans())
    def check(acts, at_once):
        engine = _open(tmp_path_factory.mktemp("db"), triggers)
        try:
            before = engine.dump()
            ids = [_run(engine, act) for act in acts]
            ids = [id for id in ids if engine.entries(id)]
            after = engine.dump()
            rounds = [ids] if at_once else [[id] for id in reversed(ids)]
            for group in rounds:
                seen = engine.preview(*group)
                taken = engine.take_back(*group)
                assert taken.clean, taken.effects
                assert seen.effects == taken.effects
            assert engine.dump() == before
            for undo in list(reversed(engine.undone)):
                redone = engine.take_back(undo)
                assert redone.clean, redone.effects
            assert engine.dump() == after
        finally:
            engine.close()

    check()


@pytest.mark.parametrize("triggers", [False, True])
def test_what_strangers_did_in_between_survives_or_is_named(tmp_path_factory, triggers):
    @TRIES
    @given(ACTS, st.lists(OPERATIONS, min_size=1, max_size=6))
    def check(acts, strange):
        engine = _open(tmp_path_factory.mktemp("db"), triggers)
        try:
            ids = []
            for number, act in enumerate(acts):
                ids.append(_run(engine, act))
                for sql, params in strange[number::3]:
                    try:
                        engine.stranger(sql, params)
                    except engine.errors:
                        continue
            ids = [id for id in ids if engine.entries(id)]
            for id in reversed(ids):
                before = engine.dump()
                seen = engine.preview(id)
                assert engine.dump() == before
                taken = engine.take_back(id)
                assert (seen.clean, seen.effects) == (taken.clean, taken.effects)
                if not taken.clean:
                    assert all(e.table for e in engine.conflicts(taken))
                    assert engine.dump() == before
        finally:
            engine.close()

    check()
