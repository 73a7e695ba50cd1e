"""Acts are recorded around their effects, and taken back one by one."""

import pytest

pytestmark = pytest.mark.anyio


async def test_an_act_is_recorded_with_who_what_and_how(at):
    made = await at.agent(turn="t1").notes.put(key="a", value="1")
    act = await at.act(made.act)
    assert (act.actor, act.actor_kind, act.agent, act.session, act.turn) == (
        "mcp:agent:juno",
        "agent",
        "juno",
        "s1",
        "t1",
    )
    assert (act.tool, act.summary, act.state, act.undoable) == ("notes.put", "put a", "done", True)
    assert [(t.resource, t.before, t.after) for t in act.touched] == [("notes:a", "absent", "v:1")]


async def test_undo_brings_a_note_back(at):
    await at.agent().notes.put(key="a", value="1")
    second = await at.agent().notes.put(key="a", value="2")
    outcome = await at.person().undo.run(id=second.act)
    assert at.values == {"a": "1"}
    assert [(r.id, r.state, r.already) for r in outcome.results] == [(second.act, "undone", False)]


async def test_undo_of_a_rename_touches_both_keys(at):
    await at.agent().notes.put(key="a", value="1")
    moved = await at.agent().notes.rename(key="a", to="b")
    await at.person().undo.run(id=moved.act)
    assert at.values == {"a": "1"}


async def test_undo_of_a_deletion(at):
    await at.agent().notes.put(key="a", value="1")
    gone = await at.agent().notes.delete(key="a")
    await at.person().undo.run(id=gone.act)
    assert at.values == {"a": "1"}


async def test_an_act_shows_why_its_caller_called(at):
    items = [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]
    ctx = at.module("notes")
    await ctx.call("notes.batch", {"items": items}, why_="it was asked for")
    await ctx.notes.put(key="c", value="3")
    acts = await at.rows("SELECT summary, why FROM undo_acted ORDER BY seq")
    assert [tuple(row.values()) for row in acts] == [
        ("put a", '["it was asked for"]'),
        ("put b", '["it was asked for"]'),
        ("put c", "[]"),
    ]


async def test_what_an_inverse_records_is_not_done_for_what_its_caller_says(at):
    made = await at.module("notes").notes.put(key="a", value="1")
    await at.module("notes").call("undo.run", id=made.act, why_="a second thought")
    counters = await at.rows("SELECT why FROM undo_acted WHERE role = 'counter'")
    assert [row["why"] for row in counters] == ["[]"]
