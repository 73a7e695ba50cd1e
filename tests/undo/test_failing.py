"""An inverse that fails: everything is as before, the error is kept, and it can be tried again."""

import pytest

from takeback import TakebackError
from tests.undo.house import house
from tests.undo.odd import Odd

pytestmark = pytest.mark.anyio

FAILURES = ["before", "inside", "late"]


async def five(at):
    """Five acts on five keys."""
    return [(await at.agent().notes.put(key=key, value="1")).act for key in "abcde"]


async def states(at, acts):
    return [await at.state(act) for act in acts]


@pytest.mark.parametrize("how", FAILURES)
async def test_a_failed_undo_is_kept_said_once_and_tried_again(at, how):
    act = (await at.agent().notes.put(key="a", value="1")).act
    at.notebook.break_next(how)
    with pytest.raises(TakebackError) as failed:
        await at.person().undo.run(id=act)
    assert failed.value.code == "undo.failed"
    assert failed.value.data == {"act": act, "cause": "notes.broken"}
    assert failed.value.retryable
    row = await at.act(act)
    assert (row.state, row.tries, row.undoable, row.undone_in) == ("failed", 1, True, None)
    assert row.error == {"code": "notes.broken", "message": "The notebook is stuck", "hint": "Try again."}
    assert at.values == {"a": "1"}
    assert [e for e in await at.events() if e[1] == act] == [("undo.recorded", act), ("undo.failed", act)]

    outcome = await at.person().undo.run(id=act)
    assert [(r.state, r.already) for r in outcome.results] == [("undone", False)]
    row = await at.act(act)
    assert (row.state, row.tries, row.error) == ("undone", 2, None)
    assert at.values == {}
    assert [kind for kind, _ in await at.events()] == ["undo.recorded", "undo.failed", "undo.done"]


async def test_it_can_fail_many_times(at):
    act = (await at.agent().notes.put(key="a", value="1")).act
    for tries in range(1, 4):
        at.notebook.break_next()
        with pytest.raises(TakebackError):
            await at.person().undo.run(id=act)
        assert (await at.act(act)).tries == tries
    assert await at.state(act) == "failed"
    await at.person().undo.rewind(session="s1")
    assert at.values == {}


async def test_the_failed_run_is_abandoned_with_its_error(at):
    act = (await at.agent().notes.put(key="a", value="1")).act
    at.notebook.break_next()
    with pytest.raises(TakebackError):
        await at.person().undo.run(id=act)
    run = (await at.person().undo.list()).acts[0]
    assert (run.role, run.state, run.undoable) == ("undo", "abandoned", False)
    assert run.error is not None
    assert run.error["code"] == "notes.broken"


@pytest.mark.parametrize("how", FAILURES)
async def test_a_rewind_whose_third_step_fails_puts_everything_back(at, how):
    acts = await five(at)
    before = dict(at.values)
    at.notebook.break_next(how, after=2)
    with pytest.raises(TakebackError) as failed:
        await at.person().undo.rewind(session="s1")
    assert failed.value.data["act"] == acts[2]
    assert at.values == before
    assert await states(at, acts) == ["done", "done", "failed", "done", "done"]
    assert [(await at.act(act)).undone_in for act in acts] == [None] * 5
    assert [act for kind, act in await at.events() if kind == "undo.failed"] == [acts[2]]
    await at.person().undo.rewind(session="s1")
    assert at.values == {}
    assert await states(at, acts) == ["undone"] * 5


async def test_a_rewind_on_one_note_whose_third_step_fails(at):
    acts = [(await at.agent().notes.put(key="a", value=str(n))).act for n in range(5)]
    at.notebook.break_next(after=2)
    with pytest.raises(TakebackError):
        await at.person().undo.rewind(session="s1")
    assert at.values == {"a": "4"}
    assert await states(at, acts) == ["done", "done", "failed", "done", "done"]


async def test_putting_back_fails_too(at):
    """Two steps ran, the third failed, the first put-back worked and the second one did not."""
    acts = await five(at)
    at.notebook.failures = ["", "", "before", "", "before"]
    with pytest.raises(TakebackError) as failed:
        await at.person().undo.rewind(session="s1")
    assert "as it was before" not in failed.value.hint
    assert at.values == {"a": "1", "b": "1", "c": "1", "d": "1"}
    assert await states(at, acts) == ["done", "done", "failed", "done", "unknown"]
    run = (await at.person().undo.list()).acts[0]
    assert (run.role, run.state) == ("undo", "unknown")


async def test_one_failed_put_back_does_not_keep_the_others(at):
    acts = await five(at)
    at.notebook.failures = ["", "", "before", "before", ""]
    with pytest.raises(TakebackError):
        await at.person().undo.rewind(session="s1")
    assert at.values == {"a": "1", "b": "1", "c": "1", "e": "1"}
    assert await states(at, acts) == ["done", "done", "failed", "unknown", "done"]


async def test_what_is_unknown_is_not_undone_blindly_until_the_person_settles_it(at):
    acts = await five(at)
    at.notebook.failures = ["", "", "before", "", "before"]
    with pytest.raises(TakebackError):
        await at.person().undo.rewind(session="s1")
    with pytest.raises(TakebackError) as refused:
        await at.person().undo.run(id=acts[4])
    assert refused.value.code == "undo.not_undoable"
    await at.person().undo.settle(id=acts[4], happened=False)
    await at.person().undo.rewind(session="s1")
    assert at.values == {}


async def test_an_inverse_without_a_counter_that_ran_is_not_called_undone_back(at):
    """Nothing can put it back, so nobody says that everything is as before."""
    at.notebook.inverse = "notes.restore_plain"
    acts = await five(at)
    at.notebook.break_next(after=2)
    with pytest.raises(TakebackError) as failed:
        await at.person().undo.rewind(session="s1")
    assert "as it was before" not in failed.value.hint
    assert at.values == {"a": "1", "b": "1", "c": "1"}
    assert await states(at, acts) == ["done", "done", "failed", "unknown", "unknown"]


async def test_a_redo_that_fails_leaves_the_act_undone(at):
    act = (await at.agent().notes.put(key="a", value="1")).act
    undo = (await at.person().undo.run(id=act)).act
    at.notebook.break_next()
    with pytest.raises(TakebackError):
        await at.person().undo.redo(id=act)
    row = await at.act(act)
    assert (row.state, row.undone_in, row.error is None) == ("undone", undo, False)
    assert at.values == {}
    await at.person().undo.redo(id=act)
    assert at.values == {"a": "1"}
    assert (await at.act(act)).error is None


async def test_an_inverse_that_crashes_is_a_failed_undo(at):
    act = (await at.agent().notes.put(key="a", value="1")).act
    at.notebook.break_next("crash")
    with pytest.raises(TakebackError) as failed:
        await at.person().undo.run(id=act)
    assert failed.value.data["cause"] == "call.crashed"
    assert await at.state(act) == "failed"
    assert at.values == {"a": "1"}


@pytest.mark.parametrize("touched", [[], [{"resource": "odd:a", "before": "1", "after": "2"}]])
async def test_an_inverse_that_fails_where_nobody_can_look_can_be_tried_again(home, touched):
    Odd.texts.clear()
    async with house(home, Odd) as at:
        given = {"tool": "odd.do", "summary": "did it", "inverse_tool": "odd.fix", "touched": touched}
        made = await at.module("odd").undo.record({**given, "inverse_input": {"text": "fail"}})
        with pytest.raises(TakebackError) as failed:
            await at.person().undo.run(id=made.id)
        assert failed.value.data["cause"] == "odd.failed"
        assert await at.state(made.id) == "failed"
        assert (await at.person().undo.run(id=made.id)).results[0].state == "undone"
