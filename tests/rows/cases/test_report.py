"""The report, cases 58 to 60: what is told before and after, and that all of it is true."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from takeback.errors import ConflictError
from tests.rows.engines import PostgresEngine, SqliteEngine

SCHEMA = (
    "CREATE TABLE parent (id INTEGER PRIMARY KEY, u INTEGER UNIQUE, v TEXT)",
    "CREATE TABLE child (id INTEGER PRIMARY KEY, up INTEGER REFERENCES parent (id) ON DELETE CASCADE,"
    " v TEXT)",
    "CREATE TABLE loose (id INTEGER PRIMARY KEY, up INTEGER REFERENCES parent (id) ON DELETE SET NULL)",
    "CREATE TABLE flag (id INTEGER PRIMARY KEY, grp INTEGER, main INTEGER)",
    "CREATE UNIQUE INDEX one_main ON flag (grp) WHERE main = 1",
    "CREATE UNIQUE INDEX folded ON parent (lower(v))",
)
FILLED = (
    "INSERT INTO parent VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, NULL)",
    "INSERT INTO child VALUES (1, 1, 'x'), (2, 2, 'y')",
    "INSERT INTO loose VALUES (1, 1), (2, NULL)",
    "INSERT INTO flag VALUES (1, 1, 1), (2, 1, 0), (3, 2, 1)",
)


@pytest.fixture
def filled(engine):
    engine.schema(*SCHEMA, *FILLED)
    return engine


def test_58_a_preview_is_the_undo_itself_taken_back(filled):
    acts = [
        filled.act("DELETE FROM parent WHERE id = 1", "UPDATE parent SET u = 21, v = 'A' WHERE id = 2"),
        filled.act("INSERT INTO parent VALUES (4, 10, 'n')", "UPDATE child SET v = 'z'"),
        filled.act("UPDATE flag SET main = 0 WHERE id = 1", "UPDATE flag SET main = 1 WHERE id = 2"),
    ]
    filled.stranger("UPDATE child SET id = id + 0, up = up WHERE id = 2")
    before = filled.dump()
    seen = [filled.preview(*acts) for _ in range(2)]
    assert filled.dump() == before
    assert all(each.undone_in is None for each in filled.entries(*acts))
    taken = filled.take_back(*acts)
    assert seen == [seen[0]] * 2
    assert (seen[0].effects, seen[0].clean, seen[0].changes) == (taken.effects, taken.clean, taken.changes)


def test_58_a_preview_finds_what_only_the_database_knows(filled):
    """Each of these is refused by the database alone: nothing in the rows that were read tells of it."""
    acts = [
        filled.act("UPDATE parent SET v = 'other' WHERE id = 1"),
        filled.act("UPDATE flag SET main = 0 WHERE id = 3"),
        filled.act("INSERT INTO parent VALUES (5, 50, 'five')"),
        filled.act("UPDATE parent SET u = 11 WHERE id = 1"),
    ]
    filled.stranger("INSERT INTO parent VALUES (8, 10, 'A')")
    filled.stranger("INSERT INTO flag VALUES (9, 2, 1)")
    filled.stranger("INSERT INTO child VALUES (9, 5, 'theirs')")
    before = filled.dump()
    for act in acts:
        seen = filled.preview(act)
        taken = filled.take_back(act)
        assert not seen.clean
        assert seen.effects == taken.effects
        assert all(each.constraint for each in filled.conflicts(taken))
    assert filled.dump() == before


@pytest.mark.anyio
class TestPartial:
    async def test_59_a_part_is_undone_only_on_request_and_the_rest_is_listed(self, bench):
        done = await bench.agent().rows.execute(sql="UPDATE skill SET title = 'x', level = 9 WHERE id < 3")
        bench.sql("UPDATE skill SET title = 'mine' WHERE id = 1")
        with pytest.raises(ConflictError):
            await bench.undo(done.act)
        plan = await bench.preview(done.act)
        (conflict,) = plan.conflicts
        assert conflict.resource == "rows:main/skill/1/title"
        assert len({conflict.base, conflict.ours, conflict.theirs}) == 3
        undone = await bench.undo(done.act, skip_conflicts=True)
        assert bench.sql("SELECT title, level FROM skill WHERE id < 3 ORDER BY id") == [
            ("mine", 5),
            ("SQL", 4),
        ]
        assert "rows:main/skill/1/title" in undone.model_dump_json()

    async def test_59_the_constraint_that_stands_against_it_is_named(self, bench):
        done = await bench.agent().rows.execute(sql="UPDATE tag SET weight = weight + 10")
        bench.sql("INSERT INTO tag VALUES ('green', 1.0)")
        plan = await bench.preview(done.act)
        (conflict,) = plan.conflicts
        assert conflict.resource == "rows:main/tag/red/weight"
        assert ("tag.weight" if bench.database.name == "sqlite" else "tag_weight_key") in conflict.reason
        before = bench.dump()
        with pytest.raises(ConflictError):
            await bench.undo(done.act)
        assert bench.dump() == before


def test_59_of_each_conflict_all_three_sides_are_told(filled):
    act = filled.act("UPDATE parent SET v = 'x', u = u + 1 WHERE id = 1", "DELETE FROM child WHERE id = 1")
    filled.stranger("UPDATE parent SET v = 'theirs' WHERE id = 1")
    filled.stranger("INSERT INTO child VALUES (1, 2, 'again')")
    sides = {
        (each.table, each.key, each.column): (each.base, each.ours, each.theirs)
        for each in filled.conflicts(filled.take_back(act))
    }
    assert sides == {
        ("parent", filled.key(1), "v"): ("x", "a", "theirs"),
        ("child", filled.key(1), ""): (
            None,
            {"up": filled.key(1)[0], "v": "x"},
            {"up": filled.key(2)[0], "v": "again"},
        ),
    }


NUMBER = st.integers(1, 5)
WORTH = st.one_of(st.none(), st.integers(0, 3))
TEXT = st.sampled_from([None, "a", "A", "b", ""])


def _statement(sql, *values):
    return st.tuples(st.just(sql), st.tuples(*values))


OPERATIONS = st.one_of(
    _statement("INSERT INTO parent VALUES (?, ?, ?)", NUMBER, WORTH, TEXT),
    _statement("INSERT INTO child VALUES (?, ?, ?)", NUMBER, NUMBER, TEXT),
    _statement("INSERT INTO loose VALUES (?, ?)", NUMBER, NUMBER),
    _statement("INSERT INTO flag VALUES (?, ?, ?)", NUMBER, st.integers(1, 2), st.integers(0, 1)),
    _statement("UPDATE parent SET u = ?, v = ? WHERE id = ?", WORTH, TEXT, NUMBER),
    _statement("UPDATE parent SET id = ? WHERE id = ?", NUMBER, NUMBER),
    _statement("UPDATE parent SET u = u + ?", st.integers(-50, 50)),
    _statement("UPDATE child SET up = ?, v = ? WHERE id = ?", NUMBER, TEXT, NUMBER),
    _statement("UPDATE child SET v = ?", TEXT),
    _statement("UPDATE flag SET main = ? WHERE id = ?", st.integers(0, 1), NUMBER),
    _statement("UPDATE flag SET grp = 3 - grp WHERE id = ?", NUMBER),
    _statement("UPDATE loose SET id = id + ?", st.integers(0, 7)),
    _statement("DELETE FROM parent WHERE id = ?", NUMBER),
    _statement("DELETE FROM child WHERE id <= ?", NUMBER),
    _statement("DELETE FROM flag WHERE main = ?", st.integers(0, 1)),
)
ACTS = st.lists(st.lists(OPERATIONS, min_size=1, max_size=4), min_size=1, max_size=5)
TRIES = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(params=["postgresql", "sqlite"])
def fresh(request, tmp_path_factory):
    """Makes a new engine, as often as it is asked to."""
    if request.param == "sqlite":
        return lambda: SqliteEngine(tmp_path_factory.mktemp("db"))
    server = request.getfixturevalue("postgres")
    return lambda: PostgresEngine(server)


def _run(engine, statements):
    """One act of those statements that the database accepts."""

    def body(link):
        for sql, params in statements:
            engine.dialect.savepoint(link, "one")
            try:
                link.execute(sql if engine.name == "sqlite" else sql.replace("?", "%s"), params)
            except Exception as error:
                if engine.dialect.violation(error) is None:
                    raise
                engine.dialect.rollback_to(link, "one")
            else:
                engine.dialect.release(link, "one")

    id = engine.act_of(body)
    return [id] if engine.entries(id) else []


def test_60_after_undoing_everything_a_dump_is_the_same_to_the_byte(fresh):
    @TRIES
    @given(ACTS, st.booleans())
    def check(acts, at_once):
        engine = fresh()
        try:
            engine.schema(*SCHEMA, *FILLED)
            before = engine.dump()
            ids = [id for act in acts for id in _run(engine, act)]
            after = engine.dump()
            for group in [ids] if at_once else [[id] for id in reversed(ids)]:
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


CELLS = st.tuples(st.sampled_from(["a", "b"]), st.integers(1, 6))
AGENTS = st.one_of(
    st.tuples(st.just("UPDATE t SET a = ?, b = ? WHERE id = ?"), st.tuples(WORTH, WORTH, NUMBER)),
    st.tuples(st.just("UPDATE t SET b = b + 1 WHERE id <= ?"), st.tuples(NUMBER)),
    st.tuples(st.just("DELETE FROM t WHERE id = ?"), st.tuples(NUMBER)),
    st.tuples(st.just("INSERT INTO t VALUES (?, ?, ?)"), st.tuples(NUMBER, WORTH, WORTH)),
)


def test_60_foreign_edits_in_between_survive_or_the_undo_is_refused_and_names_them(fresh):
    """What a stranger sets is always a value that nobody else sets."""

    @TRIES
    @given(
        st.lists(st.tuples(st.lists(AGENTS, min_size=1, max_size=3), st.lists(CELLS, max_size=2)), max_size=5)
    )
    def check(rounds):
        engine = fresh()
        try:
            engine.schema("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER)")
            engine.schema("INSERT INTO t VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3), (6, 6, 6)")
            expected = {id: {"a": id, "b": id} for id in (1, 2, 3, 6)}
            ids, own = [], 1000
            for statements, cells in rounds:
                ids += _run(engine, statements)
                for column, id in cells:
                    own += 1
                    engine.stranger(f"UPDATE t SET {column} = ? WHERE id = ?", (own, id))
                    if engine.stranger(f"SELECT id FROM t WHERE {column} = {own}") and id in expected:
                        expected[id][column] = own
            refused = False
            for id in reversed(ids):
                before = engine.dump()
                taken = engine.take_back(id)
                if not taken.clean:
                    refused = True
                    assert all(each.table == "t" and each.key for each in engine.conflicts(taken))
                    assert engine.dump() == before
            if not refused:
                rows = engine.stranger("SELECT id, a, b FROM t")
                assert {id: {"a": a, "b": b} for id, a, b in rows} == expected
        finally:
            engine.close()

    check()
