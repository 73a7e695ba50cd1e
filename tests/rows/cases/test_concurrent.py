"""Concurrent changes since the step, cases 10 to 19.

Case 11: a value that was changed away and back again is the value that the act left, so it is given back:
values are compared, not how often they changed. Case 19 at each durable step of the kernel's is
`tests/rows/module/test_crash.py`; here a process is killed before each statement to the database.
"""

import os
import signal
import threading
import traceback

import pytest

from takeback.errors import ConflictError, TakebackError
from takeback_acts.rows.entries import Entry
from takeback_acts.rows.journal import Ledger
from takeback_acts.rows.postgres.link import open_link as open_postgres
from takeback_acts.rows.rules import Rules
from takeback_acts.rows.sqlite.link import open_link as open_sqlite

TABLE = "CREATE TABLE skill (id INTEGER PRIMARY KEY, name TEXT, level INTEGER, note TEXT)"


@pytest.fixture
def skills(engine):
    engine.schema(TABLE, "INSERT INTO skill VALUES (1, 'go', 3, NULL), (2, 'rust', 2, NULL)")
    return engine


def test_10_another_column_changed_later_is_kept(skills):
    act = skills.act("UPDATE skill SET level = 9 WHERE id = 1")
    skills.stranger("UPDATE skill SET name = 'Go', note = 'theirs' WHERE id = 1")
    assert skills.take_back(act).clean
    assert skills.stranger("SELECT * FROM skill WHERE id = 1") == [(1, "Go", 3, "theirs")]


def test_11_the_same_column_changed_later_is_a_conflict_with_three_sides(skills):
    act = skills.act("UPDATE skill SET level = 9, name = 'x' WHERE id = 1")
    skills.stranger("UPDATE skill SET level = 5 WHERE id = 1")
    (conflict,) = skills.conflicts(skills.take_back(act))
    assert (conflict.table, conflict.key, conflict.column) == ("skill", skills.key(1), "level")
    assert (conflict.base, conflict.ours, conflict.theirs) == skills.values(9, 3, 5)
    assert skills.stranger("SELECT * FROM skill WHERE id = 1") == [(1, "x", 5, None)]


def test_11_changed_away_and_back_again_is_given_back(skills):
    act = skills.act("UPDATE skill SET level = 9 WHERE id = 1")
    skills.stranger("UPDATE skill SET level = 5 WHERE id = 1")
    skills.stranger("UPDATE skill SET level = 9 WHERE id = 1")
    assert skills.take_back(act).clean
    assert skills.stranger("SELECT level FROM skill WHERE id = 1") == [(3,)]


def test_12_what_already_has_its_old_value_counts_as_done(skills):
    act = skills.act("UPDATE skill SET level = 9, name = 'x' WHERE id = 1", "DELETE FROM skill WHERE id = 2")
    skills.stranger("UPDATE skill SET level = 3 WHERE id = 1")
    skills.stranger("INSERT INTO skill VALUES (2, 'rust', 2, NULL)")
    taken = skills.take_back(act)
    assert taken.clean
    found = {(each.key, each.column): each.action for each in taken.effects}
    assert found[skills.key(1), "level"] == found[skills.key(2), ""] == "skip"
    assert skills.entries(act)[0].undone_in == skills.undone[-1]
    assert skills.stranger("SELECT * FROM skill ORDER BY id") == [(1, "go", 3, None), (2, "rust", 2, None)]


def test_13_undo_of_an_insert_compares_the_whole_row(skills):
    act = skills.act("INSERT INTO skill (id, name) VALUES (3, 'c')")
    skills.stranger("UPDATE skill SET note = 'theirs' WHERE id = 3")
    (conflict,) = skills.conflicts(skills.take_back(act))
    assert (conflict.key, conflict.base, conflict.theirs) == (
        skills.key(3),
        {"note": None},
        {"note": "theirs"},
    )
    assert skills.stranger("SELECT note FROM skill WHERE id = 3") == [("theirs",)]


def test_14_an_updated_row_deleted_since_and_a_deleted_row_made_again_since(skills):
    updated = skills.act("UPDATE skill SET level = 9 WHERE id = 1")
    deleted = skills.act("DELETE FROM skill WHERE id = 2")
    skills.stranger("DELETE FROM skill WHERE id = 1")
    skills.stranger("INSERT INTO skill VALUES (2, 'theirs', 2, NULL)")
    before = skills.dump()
    assert [each.action for each in skills.conflicts(skills.take_back(updated))] == ["gone"]
    assert [each.action for each in skills.conflicts(skills.take_back(deleted))] == ["conflict"]
    assert skills.dump() == before


def test_15_columns_that_belong_together_conflict_as_one(engine):
    engine.schema("CREATE TABLE price (id INTEGER PRIMARY KEY, amount INTEGER, currency TEXT, note TEXT)")
    engine.schema("INSERT INTO price VALUES (1, 10, 'EUR', '')")
    engine.rules = Rules(groups={"price": (frozenset({"amount", "currency"}),)})
    act = engine.act("UPDATE price SET amount = 12, note = 'x'")
    engine.stranger("UPDATE price SET currency = 'USD'")
    assert [each.column for each in engine.conflicts(engine.take_back(act))] == ["amount"]
    assert engine.stranger("SELECT * FROM price") == [(1, 12, "USD", "x")]


def test_16_of_a_counter_the_difference_is_given_back(engine):
    engine.schema(
        "CREATE TABLE stock (id INTEGER PRIMARY KEY, n INTEGER)", "INSERT INTO stock VALUES (1, 10)"
    )
    engine.rules = Rules(deltas={"stock": frozenset({"n"})})
    act = engine.act("UPDATE stock SET n = n + 5")
    engine.stranger("UPDATE stock SET n = n * 100")
    assert engine.take_back(act).clean
    assert engine.stranger("SELECT n FROM stock") == [(1495,)]


def test_16_a_difference_that_is_not_exact_is_a_conflict(engine):
    engine.schema("CREATE TABLE stock (id INTEGER PRIMARY KEY, n DOUBLE PRECISION)")
    engine.schema("INSERT INTO stock VALUES (1, 0.1)")
    engine.rules = Rules(deltas={"stock": frozenset({"n"})})
    act = engine.act("UPDATE stock SET n = n + 0.2")
    engine.stranger("UPDATE stock SET n = n + 1e17")
    assert [each.column for each in engine.conflicts(engine.take_back(act))] == ["n"]
    assert engine.stranger("SELECT n FROM stock") == [(1e17,)]


def test_16_a_counter_of_exact_numbers_keeps_them_exact(postgresql):
    postgresql.schema("CREATE TABLE stock (id int PRIMARY KEY, n numeric)")
    postgresql.schema("INSERT INTO stock VALUES (1, 12345678901234567890.10)")
    postgresql.rules = Rules(deltas={"stock": frozenset({"n"})})
    act = postgresql.act("UPDATE stock SET n = n + 0.01")
    postgresql.stranger("UPDATE stock SET n = n + 1")
    assert postgresql.take_back(act).clean
    assert postgresql.stranger("SELECT n::text FROM stock") == [("12345678901234567891.10",)]


def opened(engine):
    """Another connection with a ledger of its own, as another process would have."""
    link = open_sqlite(engine.path) if engine.name == "sqlite" else open_postgres(engine.url)
    dialect = type(engine.dialect)()
    dialect.begin(link)
    catalog = dialect.catalog(link)
    dialect.commit(link)
    return link, dialect, Ledger(dialect, catalog)


def at_once(*jobs):
    """Runs jobs in threads that start together; what each raised or gave."""
    start, found = threading.Barrier(len(jobs)), dict[int, object]()

    def run(number, job):
        start.wait(20)
        try:
            found[number] = job()
        except Exception as error:
            found[number] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[number] for number in sorted(found)]


def test_17_of_two_undos_of_one_step_at_once_exactly_one_wins(skills):
    def undo(name):
        link, dialect, ledger = opened(skills)

        def job():
            dialect.begin(link)
            try:
                taken = ledger.take_back(link, ledger.entries(link, ids=[act]), id=name, at="2026-11-30")
                dialect.commit(link)
                return taken.clean
            except BaseException:
                dialect.rollback(link)
                raise
            finally:
                link.close()

        return job

    for number in range(5):
        act = skills.act(f"UPDATE skill SET level = {number + 10} WHERE id = 1")
        found = at_once(undo(f"{act}-a"), undo(f"{act}-b"))
        assert found.count(True) == 1, found
        (other,) = (each for each in found if each is not True)
        assert isinstance(other, ConflictError), other
        assert other.code == "rows.undone"
        assert skills.stranger("SELECT level FROM skill WHERE id = 1") == [(3,)]
        assert skills.entries(act)[0].undone_in in (f"{act}-a", f"{act}-b")


def test_17_an_undo_and_a_writer_at_once_lose_nothing(skills):
    writer, _, _ = opened(skills)
    for number in range(5):
        skills.stranger("UPDATE skill SET level = 3 WHERE id = 1")
        act = skills.act("UPDATE skill SET level = 9 WHERE id = 1")
        taken, wrote = at_once(
            lambda act=act: skills.take_back(act),
            lambda: writer.execute("UPDATE skill SET level = level + 100 WHERE id = 1"),
        )
        assert wrote == [], wrote
        level = skills.stranger("SELECT level FROM skill WHERE id = 1")[0][0]
        if isinstance(taken, TakebackError):
            assert level == 109, (number, taken)
        else:
            assert level == (103 if taken.clean else 109)
    writer.close()


@pytest.mark.anyio
class TestDependents:
    async def test_18_what_depends_on_a_step_is_listed_and_refused_or_taken_along(self, bench):
        first = await bench.agent().rows.update(table="skill", key=1, set={"title": "Rust"})
        later = await bench.agent(session="s2").rows.update(table="skill", key=1, set={"title": "Zig"})
        plan = await bench.preview(first.act)
        assert [each.resource for each in plan.conflicts] == ["rows:main/skill/1/title"]
        assert [each.dependents for each in plan.steps] == [[later.act]]
        with pytest.raises(ConflictError):
            await bench.undo(first.act)
        assert bench.sql("SELECT title FROM skill WHERE id = 1") == [("Zig",)]
        await bench.undo(first.act, dependents=True)
        assert bench.sql("SELECT title FROM skill WHERE id = 1") == [("Python",)]

    async def test_18_undo_redo_and_undo_again(self, bench):
        before = bench.dump()
        done = await bench.agent().rows.delete(table="skill", key=1)
        after = bench.dump()
        for _ in range(3):
            undone = await bench.undo(done.act)
            assert bench.dump() == before
            await bench.person().undo.redo(id=undone.act)
            assert bench.dump() == after

    async def test_18_a_redo_after_a_new_edit_is_a_conflict_and_the_edit_stays(self, bench):
        done = await bench.agent().rows.update(table="skill", key=1, set={"title": "Rust"})
        undone = await bench.undo(done.act)
        bench.sql("UPDATE skill SET title = 'mine' WHERE id = 1")
        with pytest.raises(ConflictError):
            await bench.person().undo.redo(id=undone.act)
        assert bench.sql("SELECT title FROM skill WHERE id = 1") == [("mine",)]


STATEMENTS = {
    "write": (
        "UPDATE skill SET level = 9, name = 'x'",
        "INSERT INTO skill VALUES (3, 'c', 1, NULL)",
        "DELETE FROM skill WHERE id = 2",
    ),
    "undo": ("DELETE FROM skill WHERE id = 2", "UPDATE skill SET level = 4"),
    "rewind": ("UPDATE skill SET id = id + 10", "INSERT INTO skill VALUES (1, 'c', 1, NULL)"),
}


def killed(engine, number, do):
    """Whether a process was killed before its statement of that number, or else came to its end."""
    child = os.fork()
    if child == 0:
        try:
            link, dialect, ledger = opened(engine)
            _count(link, number)
            dialect.begin(link)
            do(ledger, link)
            dialect.commit(link)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


def _count(link, number):
    left = [number]

    def counted(found):
        def call(*args):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return found(*args)

        return call

    for name in ("execute", "executemany", "post", "commit"):
        if hasattr(link, name):
            setattr(link, name, counted(getattr(link, name)))


@pytest.mark.parametrize("what", list(STATEMENTS))
def test_19_killed_before_any_statement_all_is_as_it_was(skills, what):
    first = skills.dump()
    ids = [] if what == "write" else [skills.act(each) for each in STATEMENTS[what]]
    skills.act("INSERT INTO skill VALUES (90, 'other', 1, NULL)")
    before, number = skills.dump(), 0

    def do(ledger, link):
        if what == "write":
            body = [link.execute] * 3
            ledger.write(
                link,
                Entry("killed", "2026-11-30T09:00:00.000Z"),
                lambda _: [run(sql) for run, sql in zip(body, STATEMENTS[what], strict=True)],
            )
        else:
            taken = ledger.take_back(link, ledger.entries(link, ids=ids), id="killed", at="2026-11-30")
            assert taken.clean

    while killed(skills, number := number + 1, do):
        assert skills.dump() == before, number
        assert skills.entries("killed") == []
        assert all(each.undone_in is None for each in skills.entries(*ids))
    assert number > 5
    assert [each.id for each in skills.entries("killed")] == ["killed"]
    if what == "write":
        assert skills.dump() != before
        assert skills.take_back("killed").clean
        assert skills.dump() == before
    else:
        assert all(each.undone_in == "killed" for each in skills.entries(*ids))
        skills.stranger("DELETE FROM skill WHERE id = 90")
        assert skills.dump() == first
