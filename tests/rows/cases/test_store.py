"""Store and retention, cases 51 to 54.

Blobs are the files module's: 51 is `tests/files/test_sweeping.py`, `test_kept.py` and `tests/files/packs`,
and 53 of blobs `test_a_missing_blob_is_said_and_nothing_is_changed` and
`test_a_damaged_blob_is_found_before_anything_is_changed` there. A row's own bytes are in the journal, in its
database: here the case is an entry that goes while an undo wants it, and one that is damaged.
"""

import json

import anyio
import pytest

from takeback import faults
from takeback.errors import ConflictError, NotFoundError, TakebackError
from tests.rows.module.test_expiring import _age as age


def test_51_expiring_never_takes_what_came_while_it_ran_or_what_a_redo_needs_of_the_newest(engine):
    engine.schema("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)", "INSERT INTO t VALUES (1, 0)")
    old = [engine.act(f"UPDATE t SET v = {number}") for number in (1, 2)]
    dialect, ledger, link = engine.dialect, engine.ledger, engine.link
    dialect.begin(link)
    assert ledger.expire(link, "2026-11-30T09:00:02.000Z") == 1
    dialect.rollback(link)
    assert len(engine.entries(*old)) == 2
    dialect.begin(link)
    ledger.expire(link, "2027")
    dialect.commit(link)
    assert [each.id for each in engine.entries(*old)] == old[1:]
    new = engine.act("UPDATE t SET v = 3")
    assert engine.entries(new)[0].seq > engine.entries(old[1])[0].seq
    assert engine.take_back(new, old[1]).clean
    assert engine.stranger("SELECT v FROM t") == [(1,)]


@pytest.mark.anyio
class TestRetention:
    async def test_52_a_cut_in_the_middle_of_a_chain_refuses_by_name_what_is_gone(self, bench):
        agent = bench.agent()
        acts = [(await agent.rows.update(table="skill", key=1, set={"level": n})).act for n in (7, 8, 9)]
        bench.sql("DELETE FROM takeback_journal WHERE seq = (SELECT min(seq) + 1 FROM takeback_journal)")
        with pytest.raises(TakebackError) as caught:
            await bench.undo(acts[1], dependents=True)
        assert bench.sql("SELECT level FROM skill WHERE id = 1") == [(9,)]
        assert "journal" in str(caught.value) or caught.value.data
        with pytest.raises(ConflictError):
            await bench.undo(acts[0])
        with pytest.raises(TakebackError):
            await bench.person().undo.rewind(session="s1")
        assert bench.sql("SELECT level FROM skill WHERE id = 1") == [(9,)]
        await bench.undo(acts[2])
        assert bench.sql("SELECT level FROM skill WHERE id = 1") == [(8,)]

    async def test_52_an_act_that_the_log_has_forgotten_is_not_there_and_newer_ones_are(self, bench):
        done = anyio.Event()
        stop = faults.install(lambda name: done.set() if name == "rows.expired" else None)
        old = await bench.agent().rows.update(table="skill", key=1, set={"level": 7})
        await age(bench, 50)
        new = await bench.agent().rows.update(table="skill", key=1, set={"level": 8})
        await bench.person().undo.gc()
        with anyio.fail_after(20):
            await done.wait()
        stop()
        with pytest.raises(NotFoundError):
            await bench.undo(old.act)
        await bench.undo(new.act)
        assert bench.sql("SELECT level FROM skill WHERE id = 1") == [(7,)]

    @pytest.mark.parametrize("damage", ["changes = substr(changes, 1, 20)", "changes = ''", "shapes = '{'"])
    async def test_53_a_damaged_entry_is_a_named_error_and_nothing_is_applied(self, bench, damage):
        done = await bench.agent().rows.update(table="skill", key=1, set={"level": 7})
        other = await bench.agent().rows.update(table="skill", key=2, set={"level": 7})
        bench.sql(f"UPDATE takeback_journal SET {damage} WHERE seq = 1")
        before = bench.dump()
        with pytest.raises(TakebackError) as caught:
            await bench.undo(done.act)
        assert caught.value.code == "rows.entry_damaged"
        with pytest.raises(TakebackError):
            await bench.person().undo.rewind(session="s1")
        assert bench.dump() == before
        await bench.undo(other.act)
        assert bench.sql("SELECT level FROM skill WHERE id = 2") == [(4,)]


def test_54_a_journal_of_a_hundred_thousand_entries_answers_through_its_indexes(engine):
    engine.schema("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)", "INSERT INTO t VALUES (1, 0)")
    act = engine.act("UPDATE t SET v = 1", grp="mine")
    entry = engine.entries(act)[0]
    given = "id, at, kind, grp, point, tool, shapes, changes"
    series = {
        "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)",
        "postgresql": "WITH n(i) AS (SELECT generate_series(1, 100000))",
    }[engine.name]
    engine.stranger(
        f"INSERT INTO takeback_journal ({given}) {series}"
        " SELECT 'x' || i, ?, 'act', 'g' || (i - i / 1000 * 1000), '', '', ?, ? FROM n",
        (entry.at, entry.shapes, entry.text),
    )
    if engine.name == "postgresql":
        engine.stranger("ANALYZE takeback_journal")
    asked: list[tuple[str, tuple[object, ...]]] = []
    _spied(engine.link, asked)
    assert engine.preview(act).clean
    engine.dialect.begin(engine.link)
    ledger, link = engine.ledger, engine.link
    assert [each.id for each in ledger.entries(link, grp="mine")] == [act]
    assert len(ledger.entries(link, grp="g7", since_seq=99_000)) < 3
    engine.dialect.rollback(link)
    assert engine.take_back(act).clean
    starts = ("SELECT ", "UPDATE ")
    looked = {
        (sql, tuple(params)) for sql, params in asked if "takeback_journal" in sql and sql.startswith(starts)
    }
    assert len(looked) >= 4
    for sql, params in looked:
        plan = _plan(engine, sql, params)
        assert "SCAN takeback_journal" not in plan, (sql, plan)
        assert "Seq Scan on takeback_journal" not in plan, (sql, plan)


def _spied(link, asked):
    execute = link.execute

    def spied(sql, params=()):
        asked.append((sql, params))
        return execute(sql, params)

    link.execute = spied


def _plan(engine, sql, params):
    told = "EXPLAIN QUERY PLAN" if engine.name == "sqlite" else "EXPLAIN (GENERIC_PLAN false)"
    engine.dialect.begin(engine.link)
    try:
        return json.dumps(engine.link.execute(f"{told} {sql}", params), default=str)
    finally:
        engine.dialect.rollback(engine.link)
