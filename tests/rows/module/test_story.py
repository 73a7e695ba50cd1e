"""A story with one database: what an agent did is seen, previewed, taken back, done again and rewound."""

import pytest

pytestmark = pytest.mark.anyio


async def test_an_update_is_taken_back_and_done_again(bench):
    before = bench.dump()
    done = await bench.agent().rows.update(table="skill", key=1, set={"title": "Rust", "level": 2})
    assert done.summary == "Updated 1 row of skill in main (title, level)"
    assert bench.sql("SELECT title, level FROM skill WHERE id = 1") == [("Rust", 2)]
    after = bench.dump()
    (act,) = (await bench.person().undo.list()).acts
    assert (act.id, act.state, act.summary) == (done.act, "done", done.summary)
    assert [item.resource for item in act.touched] == ["rows:main/skill/1/level", "rows:main/skill/1/title"]
    plan = await bench.preview(done.act)
    assert [step.status for step in plan.steps] == ["clean"]
    assert bench.dump() == after
    undone = await bench.undo(done.act, digest=plan.digest)
    assert bench.dump() == before
    await bench.person().undo.redo(id=undone.act)
    assert bench.dump() == after
    await bench.undo(done.act)
    assert bench.dump() == before


async def test_a_delete_comes_back_with_what_it_took_along(bench):
    before = bench.dump()
    done = await bench.agent().rows.delete(table="skill", key={"id": 1})
    assert done.changed == {"skill": 1, "note": 2}
    assert done.summary == "Deleted 1 row of skill in main and 2 of note"
    assert bench.sql("SELECT count(*) FROM note") == [(1,)]
    await bench.undo(done.act)
    assert bench.dump() == before


async def test_an_insert_tells_its_key_and_is_taken_away(bench):
    before = bench.dump()
    done = await bench.agent().rows.insert(table="skill", row={"title": "C"})
    assert [row.key for row in done.rows] == [{"id": 4}]
    await bench.undo(done.act)
    assert bench.dump() == before


async def test_a_rewind_takes_a_session_back_newest_first(bench):
    before = bench.dump()
    agent = bench.agent()
    await agent.rows.update(table="skill", key=2, set={"title": "SQLite"})
    await agent.rows.update(table="skill", key=2, set={"title": "Postgres"})
    await agent.rows.delete(table="skill", key=2)
    plan = (await bench.person().undo.preview(session="s1")).plan
    assert [step.status for step in plan.steps] == ["clean"] * 3
    done = await bench.person().undo.rewind(session="s1", digest=plan.digest)
    assert {result.state for result in done.results} == {"undone"}
    assert bench.dump() == before
    await bench.person().undo.redo(id=done.act)
    assert bench.sql("SELECT * FROM skill WHERE id = 2") == []


async def test_a_plan_tells_the_person_values_and_agents_none(bench):
    changed = await bench.agent().rows.update(table="skill", key=1, set={"level": 9})
    gone = await bench.agent().rows.delete(table="tag", key="red")
    made = await bench.agent().rows.insert(table="tag", row={"name": "green", "weight": 3.0})
    effects: dict[str, tuple[object, object]] = {}
    for act in (changed.act, gone.act, made.act):
        (step,) = (await bench.person().undo.preview(id=act)).plan.steps
        effects |= {one.resource: (one.now, one.then) for one in step.effects}
    assert effects == {
        "rows:main/skill/1/level": (9, 5),
        "rows:main/tag/red/": (None, {"name": "red", "weight": 1.0}),
        "rows:main/tag/green/": ({"name": "green", "weight": 3.0}, None),
    }
    (step,) = (await bench.agent().undo.preview(id=changed.act)).plan.steps
    assert [(one.now, one.then) for one in step.effects] == [(None, None)]
    assert "now" not in step.effects[0].model_dump()


async def test_a_conflict_tells_what_is_there_what_was_and_what_would_be(bench):
    changed = await bench.agent().rows.update(table="skill", key=1, set={"level": 9})
    bench.sql("UPDATE skill SET level = 7 WHERE id = 1")
    (step,) = (await bench.person().undo.preview(id=changed.act)).plan.steps
    (effect,) = step.effects
    assert (effect.action, effect.base, effect.now, effect.then) == ("conflict", 9, 7, 5)


async def test_the_log_keeps_no_values_of_a_plan(bench):
    changed = await bench.agent().rows.update(table="skill", key=1, set={"title": "Quechua"})
    await bench.person().undo.run(id=changed.act, key="once")
    kept = await bench.kernel.store.read(
        lambda db: [tuple(row) for row in db.execute("SELECT * FROM undo_acted")]
    )
    assert "Quechua" not in str(kept)
