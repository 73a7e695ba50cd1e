"""An inverse changes only what its act changed, and never with more authority than the one who asks."""

import pytest

from takeback import RefusedError, TakebackError
from takeback.router import CallRecord
from takeback_core.undo.models import RecordAct
from tests.undo.house import house
from tests.undo.odd import Odd

pytestmark = pytest.mark.anyio


def recorded(keys, touched, inverse="notes.restore"):
    """An act that says it touched some notes, and an inverse that brings others back."""
    items = [{"key": key, "value": "before", "base": "after"} for key in keys]
    return RecordAct.model_validate(
        {
            "tool": "notes.put",
            "summary": "put",
            "inverse_tool": inverse,
            "inverse_input": {"items": items},
            "touched": [
                {"resource": f"notes:{k}", "before": "v:before", "after": "v:after"} for k in touched
            ],
        }
    )


@pytest.mark.parametrize("inverse", ["notes.restore", "notes.restore_plain", "notes.restore_blind"])
@pytest.mark.parametrize("keys", [["b"], ["a", "b"], ["b", "a"]])
async def test_an_inverse_that_reaches_beyond_is_refused_and_nothing_is_changed(at, keys, inverse):
    at.values.update(a="after", b="after")
    act = await at.module().undo.record(recorded(keys, ["a"], inverse))
    with pytest.raises(TakebackError) as refused:
        await at.person().undo.run(id=act.id)
    assert "scope.confined" in (refused.value.code, refused.value.data.get("cause"))
    assert at.values == {"a": "after", "b": "after"}
    assert await at.state(act.id) in ("done", "failed")


async def test_an_act_that_touched_nothing_lets_its_inverse_touch_nothing(at):
    at.values["a"] = "after"
    act = await at.module().undo.record(recorded(["a"], []))
    with pytest.raises(TakebackError):
        await at.person().undo.run(id=act.id)
    assert at.values == {"a": "after"}


async def test_an_inverse_within_its_act_s_resources_runs(at):
    at.values.update(a="after", b="after")
    act = await at.module().undo.record(recorded(["a"], ["a", "b"]))
    with pytest.raises(TakebackError):
        # What it leaves is not what the log says was there before, so it is put back.
        await at.person().undo.run(id=act.id)
    assert at.values == {"a": "after", "b": "after"}


@pytest.mark.parametrize("later", [False, True])
async def test_a_forced_inverse_is_confined_as_well(at, later):
    """Also where force would overwrite what a later act did."""
    at.values.update(a="after", b="after")
    act = await at.module().undo.record(recorded(["b"], ["a"]))
    if later:
        await at.module().notes.put(key="a", value="later")
    values = dict(at.values)
    plan = (await at.person(present=True).undo.preview(id=act.id, force=True)).plan
    assert [(step.status, step.forced) for step in plan.steps] == [("not_undoable", False)]
    with pytest.raises(RefusedError) as refused:
        await at.person(present=True).undo.run(id=act.id, force=True)
    assert refused.value.code == "scope.confined"
    assert at.values == values


async def test_what_an_inverse_calls_is_confined_as_well(at):
    at.values.update(a="after", b="after")
    act = await at.module().undo.record(recorded(["a"], ["a"]))
    items = [{"key": "b", "value": "stray", "base": "after"}]
    at.notebook.asks = ("notes.restore_plain", {"items": items})
    with pytest.raises(TakebackError) as failed:
        await at.person().undo.run(id=act.id)
    assert failed.value.data["cause"] == "scope.confined"
    assert at.values == {"a": "after", "b": "after"}


async def test_the_inverse_runs_as_a_module_with_the_input_as_stored(at):
    calls: list[CallRecord] = []
    stop = at.kernel.router.on_call(calls.append)
    act = (await at.agent().notes.put(key="a", value="1")).act
    await at.person("phone", door="web", present=True).undo.run(id=act)
    stop()
    real = [c for c in calls if c.tool == "notes.restore"]
    assert {(c.caller, c.origin) for c in real} == {("module:undo", "module:undo")}


async def test_an_agent_whose_scope_was_cut_may_not_undo_there_and_the_person_may(at):
    act = (await at.agent(scope=["a"]).notes.put(key="a", value="1")).act
    cut = at.agent(scope=["b"])
    for verb in ("run", "rewind"):
        with pytest.raises(RefusedError) as refused:
            await cut.call(f"undo.{verb}", {"id": act})
        assert refused.value.code == "scope.outside"
    assert at.values == {"a": "1"}
    assert await at.state(act) == "done"
    await at.person().undo.run(id=act)
    assert at.values == {}


async def test_an_agent_without_any_scope_may_not_undo(at):
    act = (await at.agent().notes.put(key="a", value="1")).act
    with pytest.raises(RefusedError) as refused:
        await at.agent(scope=[]).undo.run(id=act)
    assert refused.value.code == "scope.outside"


async def test_an_agent_whose_scope_was_cut_may_not_redo_there(at):
    act = (await at.agent().notes.put(key="a", value="1")).act
    await at.agent().undo.run(id=act)
    with pytest.raises(RefusedError) as refused:
        await at.agent(scope=["b"]).undo.redo(id=act)
    assert refused.value.code == "scope.outside"
    assert at.values == {}


async def test_a_rewind_beyond_the_scope_of_today_is_refused_whole_or_skips_it(at):
    outside = (await at.agent().notes.put(key="a", value="1")).act
    inside = (await at.agent().notes.put(key="b", value="1")).act
    cut = at.agent(scope=["b"])
    plan = (await cut.undo.preview(session="s1")).plan
    assert {s.act: s.status for s in plan.steps} == {inside: "clean", outside: "not_undoable"}
    with pytest.raises(RefusedError):
        await cut.undo.rewind(session="s1")
    assert at.values == {"a": "1", "b": "1"}
    await cut.undo.rewind(session="s1", skip_conflicts=True)
    assert at.values == {"a": "1"}


async def test_a_preview_outside_the_scope_shows_no_versions(at):
    act = (await at.agent().notes.put(key="a", value="1")).act
    at.values["a"] = "secret"
    cut = at.agent(scope=["b"])
    assert "secret" not in (await cut.undo.preview(id=act)).model_dump_json()
    assert "secret" not in (await cut.undo.show(id=act)).model_dump_json()


async def test_where_the_owner_can_t_tell_an_agent_is_refused_and_the_person_is_not(home):
    async with house(home, Odd) as at:
        touched = [{"resource": "odd:a", "before": "1", "after": "2"}]
        given = {"tool": "odd.do", "summary": "did it", "inverse_tool": "odd.fix", "touched": touched}
        act = await at.module("odd").undo.record({**given, "inverse_input": {"text": "back"}})
        await at.change("UPDATE undo_acted SET actor = 'mcp:agent:juno', agent = 'juno'")
        with pytest.raises(RefusedError) as refused:
            await at.agent().undo.run(id=act.id)
        assert refused.value.code == "undo.scope_unknown"
        assert (await at.person().undo.run(id=act.id)).results[0].state == "undone"
