"""What the person does by hand, beside what agents do: it survives any undo, or is named as a conflict."""

import pytest

from takeback.errors import ConflictError

pytestmark = pytest.mark.anyio


async def test_another_column_that_was_changed_by_hand_stays(bench):
    done = await bench.agent().rows.update(table="skill", key=1, set={"title": "Rust"})
    bench.sql("UPDATE skill SET level = 9 WHERE id = 1")
    plan = await bench.preview(done.act)
    assert [step.status for step in plan.steps] == ["merge"]
    await bench.undo(done.act, digest=plan.digest)
    assert bench.sql("SELECT title, level FROM skill WHERE id = 1") == [("Python", 9)]


async def test_the_same_column_is_a_conflict_and_force_captures_what_it_overwrites(bench):
    done = await bench.agent().rows.update(table="skill", key=1, set={"title": "Rust", "level": 2})
    bench.sql("UPDATE skill SET title = 'mine' WHERE id = 1")
    plan = await bench.preview(done.act)
    (conflict,) = plan.conflicts
    assert conflict.resource == "rows:main/skill/1/title"
    assert len({conflict.base, conflict.ours, conflict.theirs}) == 3
    with pytest.raises(ConflictError, match=r"undo\.conflict"):
        await bench.undo(done.act)
    assert bench.sql("SELECT title, level FROM skill WHERE id = 1") == [("mine", 2)]
    forced = await bench.undo(done.act, force=True)
    assert bench.sql("SELECT title, level FROM skill WHERE id = 1") == [("Python", 5)]
    await bench.person().undo.redo(id=forced.act)
    assert bench.sql("SELECT title, level FROM skill WHERE id = 1") == [("mine", 2)]


async def test_of_an_act_in_conflict_the_rest_is_taken_back(bench):
    done = await bench.agent().rows.update(table="skill", key=1, set={"title": "Rust", "level": 2})
    bench.sql("UPDATE skill SET title = 'mine' WHERE id = 1")
    await bench.undo(done.act, skip_conflicts=True)
    assert bench.sql("SELECT title, level FROM skill WHERE id = 1") == [("mine", 5)]


async def test_a_part_is_taken_back_and_done_again_by_itself(bench):
    done = await bench.agent().rows.delete(table="skill", key=1)
    undone = await bench.undo(done.act, only=["rows:main/skill/1/", "rows:main/note/10/"])
    assert bench.sql("SELECT id FROM note ORDER BY id") == [(10,), (12,)]
    await bench.person().undo.redo(id=undone.act)
    assert bench.sql("SELECT id FROM note ORDER BY id") == [(12,)]


async def test_a_row_that_was_edited_since_it_came_is_not_taken_away(bench):
    done = await bench.agent().rows.insert(table="tag", row={"name": "green", "weight": 3.5})
    bench.sql("UPDATE tag SET weight = 4.5 WHERE name = 'green'")
    with pytest.raises(ConflictError, match=r"undo\.conflict"):
        await bench.undo(done.act)
    assert bench.sql("SELECT weight FROM tag WHERE name = 'green'") == [(4.5,)]


async def test_children_that_others_attached_are_never_taken_along(bench):
    done = await bench.agent().rows.insert(table="skill", row={"title": "C"})
    (row,) = done.rows
    bench.sql(f"INSERT INTO note VALUES (99, {row.key['id']}, 'mine')")
    plan = await bench.preview(done.act)
    assert [step.status for step in plan.steps] == ["conflict"]
    with pytest.raises(ConflictError, match=r"undo\.conflict"):
        await bench.undo(done.act, digest=plan.digest)
    assert bench.sql("SELECT body FROM note WHERE id = 99") == [("mine",)]


async def test_a_key_that_was_taken_again_is_a_conflict(bench):
    done = await bench.agent().rows.delete(table="tag", key="red")
    bench.sql("INSERT INTO tag VALUES ('red', 7.0)")
    with pytest.raises(ConflictError, match=r"undo\.conflict"):
        await bench.undo(done.act)
    assert bench.sql("SELECT weight FROM tag WHERE name = 'red'") == [(7.0,)]


async def test_a_unique_value_that_is_taken_names_its_constraint(bench):
    done = await bench.agent().rows.update(table="tag", key="red", set={"weight": 9.0})
    bench.sql("INSERT INTO tag VALUES ('green', 1.0)")
    plan = await bench.preview(done.act)
    (conflict,) = plan.conflicts
    assert "tag" in conflict.reason
    assert "taken" in conflict.reason
    with pytest.raises(ConflictError):
        await bench.undo(done.act, digest=plan.digest)
    assert bench.sql("SELECT name, weight FROM tag ORDER BY name") == [
        ("blue", 2.0),
        ("green", 1.0),
        ("red", 9.0),
    ]


async def test_a_change_between_preview_and_undo_is_noticed(bench):
    done = await bench.agent().rows.update(table="skill", key=1, set={"title": "Rust"})
    plan = await bench.preview(done.act)
    bench.sql("UPDATE skill SET title = 'mine' WHERE id = 1")
    with pytest.raises(ConflictError, match=r"undo\.plan_changed"):
        await bench.undo(done.act, digest=plan.digest)
    assert bench.sql("SELECT title FROM skill WHERE id = 1") == [("mine",)]


async def test_another_agents_later_change_is_in_the_way_and_is_named(bench):
    done = await bench.agent().rows.update(table="skill", key=1, set={"title": "Rust"})
    await bench.agent("other", session="s2").rows.update(table="skill", key=1, set={"title": "Zig"})
    with pytest.raises(ConflictError):
        await bench.undo(done.act)
    assert bench.sql("SELECT title FROM skill WHERE id = 1") == [("Zig",)]
    plan = await bench.preview(done.act)
    assert "other" in plan.conflicts[0].reason
    await bench.undo(done.act, dependents=True)
    assert bench.sql("SELECT title FROM skill WHERE id = 1") == [("Python",)]


async def test_a_rewind_of_a_row_that_was_made_renamed_and_deleted(bench):
    before = bench.dump()
    agent = bench.agent()
    made = await agent.rows.insert(table="skill", row={"title": "Developer"})
    key = made.rows[0].key
    await agent.rows.update(table="skill", key=key, set={"title": "Senior Developer"})
    await agent.rows.delete(table="skill", key=key)
    await bench.person().undo.rewind(session="s1")
    assert bench.dump() == before


async def test_a_schema_that_has_changed_since(bench):
    done = await bench.agent().rows.update(table="skill", key=1, set={"title": "Rust"})
    gone = await bench.agent().rows.update(table="skill", key=2, set={"secret": "x"})
    bench.sql("ALTER TABLE skill ADD COLUMN added TEXT DEFAULT 'new'", "ALTER TABLE skill DROP COLUMN secret")
    await bench.undo(done.act)
    assert bench.sql("SELECT title, added FROM skill WHERE id = 1") == [("Python", "new")]
    plan = await bench.preview(gone.act)
    assert [step.status for step in plan.steps] == ["conflict"]
    assert "secret" in plan.conflicts[0].resource


async def test_a_table_that_is_gone_is_gone(bench):
    done = await bench.agent().rows.update(table="tag", key="red", set={"weight": 9.0})
    bench.sql("DROP TABLE tag")
    plan = await bench.preview(done.act)
    assert [step.status for step in plan.steps] == ["gone"]
