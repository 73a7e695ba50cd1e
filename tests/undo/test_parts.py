"""Parts: some of what an act touched is taken back by itself, and the rest of it stands."""

import pytest

from takeback import ConflictError, NotFoundError, RefusedError, UsageError
from tests.undo.model import resource

pytestmark = pytest.mark.anyio


async def move(at, who=None):
    """An act on two notes: `a` goes, and `b` comes."""
    at.values["a"] = "1"
    return (await (who or at.agent()).notes.rename(key="a", to="b")).act


def names(*keys):
    return [resource(key) for key in keys]


def told(outcome):
    return [(result.id, result.state, result.part) for result in outcome.results]


async def test_a_part_is_taken_back_and_the_act_stands(at):
    act = await move(at)
    plan = (await at.person().undo.preview(id=act, only=names("a"))).plan
    assert at.values == {"b": "1"}
    (step,) = plan.steps
    assert (step.status, step.part) == ("clean", True)
    assert [(effect.resource, effect.action) for effect in step.effects] == [(resource("a"), "restore")]
    assert [(stay.resource, stay.why) for stay in step.stays] == [(resource("b"), "not_asked")]
    outcome = await at.person().undo.run(id=act, only=names("a"), digest=plan.digest)
    assert outcome.plan == plan
    assert told(outcome) == [(act, "done", True)]
    assert at.values == {"a": "1", "b": "1"}
    shown = await at.act(act)
    assert (shown.state, shown.undoable) == ("done", True)
    assert shown.taken_back == {resource("a"): outcome.act}
    assert (await at.act(outcome.act)).summary.startswith("undo of a part: ")


@pytest.mark.parametrize("first", ["a", "b"])
async def test_the_rest_goes_with_a_later_undo_of_the_act(at, first):
    act = await move(at)
    part = await at.person().undo.run(id=act, only=names(first))
    at.values[first] = "by hand"
    rest = await at.person().undo.run(id=act)
    assert told(rest) == [(act, "undone", False)]
    assert [effect.resource for effect in rest.plan.steps[0].effects] != names(first)
    assert at.values == {"a": "1"} | {first: "by hand"}
    assert [await at.state(one) for one in (act, part.act, rest.act)] == ["undone", "done", "done"]


async def test_the_last_part_ends_the_act(at):
    act = await move(at)
    await at.person().undo.run(id=act, only=names("a"))
    outcome = await at.person().undo.run(id=act, only=names("b"))
    assert told(outcome) == [(act, "undone", False)]
    assert at.values == {"a": "1"}


async def test_a_part_that_is_back_already_is_said_to_be(at):
    act = await move(at)
    await at.person().undo.run(id=act, only=names("a"))
    again = await at.person().undo.run(id=act, only=names("a"))
    assert [(result.already, result.part) for result in again.results] == [(True, True)]
    assert again.act is None
    await at.person().undo.run(id=act)
    whole = await at.person().undo.run(id=act, only=names("b"))
    assert [(result.state, result.already) for result in whole.results] == [("undone", True)]


async def test_what_the_act_did_not_touch_is_no_part(at):
    act = await move(at)
    for only in (names("c"), names("a", "c"), names("a/in")):
        with pytest.raises(NotFoundError) as refused:
            await at.person().undo.run(id=act, only=only)
        assert refused.value.code == "undo.no_part"
    assert at.values == {"b": "1"}


async def test_a_name_means_all_that_lies_in_it(at):
    at.values["d/x"] = "1"
    act = (await at.agent().notes.rename(key="d/x", to="e/y")).act
    await at.person().undo.run(id=act, only=names("d"))
    assert at.values == {"d/x": "1", "e/y": "1"}


async def test_only_one_act_has_parts(at):
    await move(at)
    with pytest.raises(UsageError) as refused:
        await at.person().undo.preview(session="s1", only=names("a"))
    assert refused.value.code == "undo.selection"


async def test_an_agent_takes_back_parts_of_its_own_alone(at):
    act = await move(at)
    with pytest.raises(NotFoundError) as refused:
        await at.agent("otto").undo.run(id=act, only=names("a"))
    assert refused.value.code == "undo.unknown_act"
    with pytest.raises(RefusedError):
        await at.agent(scope=["b"]).undo.run(id=act, only=names("a"))
    assert at.values == {"b": "1"}
    await at.agent(scope=["a"]).undo.run(id=act, only=names("a"))
    assert at.values == {"a": "1", "b": "1"}


async def test_an_inverse_that_knows_no_parts_is_run_whole_or_not_at_all(at):
    at.notebook.inverse = "notes.restore_whole"
    act = await move(at)
    with pytest.raises(RefusedError) as refused:
        await at.person().undo.run(id=act, only=names("a"))
    assert refused.value.code == "undo.not_undoable"
    at.values["b"] = "by hand"
    outcome = await at.person().undo.run(id=act, skip_conflicts=True)
    assert (outcome.results, outcome.plan.steps[0].status) == ([], "conflict")
    assert at.values == {"b": "by hand"}


# ------------------------------------------------------------------ redo


async def test_a_part_is_done_again_by_its_undo_or_by_the_act(at):
    act = await move(at)
    for redo in ("undo", "act"):
        part = await at.person().undo.run(id=act, only=names("a"))
        again = await at.person().undo.redo(id=part.act if redo == "undo" else act)
        assert told(again) == [(act, "done", True)]
        assert at.values == {"b": "1"}
        assert (await at.act(act)).taken_back == {}
        assert await at.state(part.act) == "undone"
    await at.person().undo.run(id=act)
    assert at.values == {"a": "1"}


async def test_the_redo_of_a_part_can_be_taken_back_itself(at):
    act = await move(at)
    part = await at.person().undo.run(id=act, only=names("a"))
    redo = await at.person().undo.redo(id=part.act)
    back = await at.person().undo.run(id=redo.act)
    assert told(back) == [(act, "done", True)]
    assert at.values == {"a": "1", "b": "1"}
    assert await at.state(redo.act) == "undone"
    await at.person().undo.redo(id=redo.act)
    assert at.values == {"b": "1"}


async def test_a_part_and_the_rest_are_done_again_in_either_order(at):
    act = await move(at)
    part = await at.person().undo.run(id=act, only=names("a"))
    rest = await at.person().undo.run(id=act)
    with pytest.raises(RefusedError) as refused:
        await at.person().undo.redo(id=part.act)
    assert refused.value.code == "undo.not_undoable"
    assert "rest of it" in refused.value.message
    await at.person().undo.redo(id=rest.act)
    assert at.values == {"a": "1", "b": "1"}
    await at.person().undo.redo(id=part.act)
    assert at.values == {"b": "1"}
    await at.person().undo.run(id=act)
    assert at.values == {"a": "1"}
    assert await at.state(act) == "undone"


async def test_a_part_of_what_was_redone(at):
    act = await move(at)
    await at.person().undo.run(id=act)
    await at.person().undo.redo(id=act)
    part = await at.person().undo.run(id=act, only=names("b"))
    assert at.values == {}
    rest = await at.person().undo.run(id=act)
    assert at.values == {"a": "1"}
    await at.person().undo.redo(id=rest.act)
    await at.person().undo.redo(id=part.act)
    assert at.values == {"b": "1"}


async def test_what_came_again_by_another_hand_is_none_of_the_act_any_more(at):
    at.values["x"] = "0"
    put = (await at.agent().notes.put(key="a", value="1")).act
    act = (await at.agent().notes.rename(key="a", to="b")).act
    part = await at.person().undo.run(id=act, only=names("a"))
    await at.person().undo.run(id=put)
    assert at.values == {"x": "0", "b": "1"}
    again = await at.person().undo.redo(id=part.act)
    assert [(result.already, result.part) for result in again.results] == [(True, True)]
    await at.person().undo.run(id=act)
    assert at.values == {"x": "0"}


async def test_only_what_was_done_again_is_the_acts(at):
    act = (await at.agent().notes.fill(keys=["a", "b", "c"], value="1")).act
    part = await at.person().undo.run(id=act, only=names("a", "b"))
    at.values["a"] = "1"
    await at.person().undo.redo(id=part.act)
    assert list((await at.act(act)).taken_back) == names("a")
    await at.person().undo.run(id=act)
    assert at.values == {"a": "1"}


# ------------------------------------------------------------------ others' acts


async def test_later_work_on_one_part_does_not_hold_the_other(at):
    act = await move(at)
    later = (await at.agent("otto").notes.put(key="b", value="2")).act
    with pytest.raises(ConflictError) as refused:
        await at.person().undo.run(id=act)
    assert refused.value.code == "undo.dependents"
    outcome = await at.person().undo.run(id=act, skip_conflicts=True)
    (step,) = outcome.plan.steps
    assert [(stay.resource, stay.why) for stay in step.stays] == [(resource("b"), "dependents")]
    assert [(one.resource, one.dependents) for one in outcome.plan.conflicts] == [(resource("b"), [later])]
    assert at.values == {"a": "1", "b": "2"}
    await at.person().undo.run(id=act, dependents=True)
    assert at.values == {"a": "1"}


async def test_an_older_act_is_free_of_what_was_taken_back(at):
    first = await move(at)
    second = (await at.agent().notes.rename(key="b", to="c")).act
    with pytest.raises(ConflictError) as refused:
        await at.person().undo.run(id=first)
    assert refused.value.code == "undo.dependents"
    await at.person().undo.run(id=second, only=names("b"))
    await at.person().undo.run(id=first)
    assert at.values == {"a": "1", "c": "1"}


async def test_dependents_of_a_part_are_those_on_it(at):
    act = await move(at)
    beside = (await at.agent().notes.put(key="b", value="2")).act
    onto = (await at.agent().notes.put(key="a", value="2")).act
    outcome = await at.person().undo.run(id=act, only=names("a"), dependents=True)
    assert [step.act for step in outcome.plan.steps] == [onto, act]
    assert at.values == {"a": "1", "b": "2"}
    assert await at.state(beside) == "done"


async def test_a_redone_part_is_younger_than_what_came_between(at):
    act = await move(at)
    part = await at.person().undo.run(id=act, only=names("a"))
    between = (await at.agent().notes.put(key="b", value="2")).act
    await at.person().undo.redo(id=part.act)
    with pytest.raises(ConflictError) as refused:
        await at.person().undo.run(id=act)
    assert refused.value.code == "undo.dependents"
    outcome = await at.person().undo.rewind(session="s1")
    assert [result.id for result in outcome.results] == [between, act]
    assert at.values == {"a": "1"}


# ------------------------------------------------------------------ leaving out what conflicts


async def test_a_rewind_leaves_out_only_what_conflicts(at):
    at.values["a"] = "0"
    old = (await at.agent().notes.put(key="a", value="1")).act
    moved = (await at.agent().notes.rename(key="a", to="c")).act
    at.values["c"] = "by hand"
    plan = (await at.person().undo.preview(session="s1", skip_conflicts=True)).plan
    outcome = await at.person().undo.rewind(session="s1", skip_conflicts=True, digest=plan.digest)
    assert outcome.plan == plan
    assert told(outcome) == [(moved, "done", True), (old, "undone", False)]
    assert at.values == {"a": "0", "c": "by hand"}
    await at.person().undo.redo(id=outcome.act)
    assert at.values == {"c": "by hand"}
    assert [await at.state(act) for act in (old, moved)] == ["done", "done"]


async def test_what_conflicts_blocks_what_is_older_on_it_alone(at):
    at.values.update({"a": "0", "x": "0"})
    old = (await at.agent().notes.rename(key="x", to="b")).act
    new = (await at.agent().notes.rename(key="b", to="c")).act
    at.values["b"] = "by hand"
    outcome = await at.person().undo.rewind(session="s1", skip_conflicts=True)
    assert told(outcome) == [(new, "done", True), (old, "done", True)]
    assert at.values == {"a": "0", "b": "by hand", "x": "0"}
    del at.values["b"]
    outcome = await at.person().undo.rewind(session="s1")
    assert told(outcome) == [(new, "undone", False), (old, "undone", False)]
    assert at.values == {"a": "0", "x": "0"}


async def test_a_preview_without_leave_to_skip_is_one_as_well(at):
    act = await move(at)
    at.values["b"] = "by hand"
    plan = (await at.person().undo.preview(id=act)).plan
    assert (plan.steps[0].status, plan.steps[0].stays) == ("conflict", [])
    await at.person().undo.run(id=act, skip_conflicts=True, digest=plan.digest)
    assert at.values == {"a": "1", "b": "by hand"}


async def test_where_all_conflicts_nothing_is_done(at):
    act = await move(at)
    at.values.update({"a": "by hand", "b": "by hand"})
    outcome = await at.person().undo.run(id=act, skip_conflicts=True)
    assert (outcome.results, outcome.act, outcome.plan.steps[0].status) == ([], None, "conflict")
    assert outcome.plan == (await at.person().undo.preview(id=act)).plan


async def test_force_and_skipping_together_leave_what_force_can_not_do(at):
    act = await move(at)
    await at.agent("otto").notes.put(key="a", value="2")
    outcome = await at.person(present=True).undo.run(id=act, force=True, skip_conflicts=True)
    assert told(outcome) == [(act, "undone", False)]
    assert at.values == {"a": "1"}


async def test_a_part_of_an_act_with_acts_in_it(at):
    items = [{"key": key, "value": "1"} for key in "ab"]
    act = (await at.agent().notes.batch(items=items, own="around")).act
    outcome = await at.person().undo.run(id=act, only=names("a"))
    assert at.values == {"b": "1", "batch": "ran"}
    (inner,) = outcome.results
    assert (inner.state, inner.part) == ("undone", False)
    assert await at.state(act) == "done"
    await at.person().undo.run(id=act)
    assert at.values == {}


# ------------------------------------------------------------------ failing, keys, and time


async def test_a_part_that_fails_leaves_all_as_it_was(at):
    act = await move(at)
    at.notebook.break_next("late")
    with pytest.raises(Exception, match="could not be taken back"):
        await at.person().undo.run(id=act, only=names("a"))
    assert at.values == {"b": "1"}
    assert (await at.act(act)).taken_back == {}
    await at.person().undo.run(id=act)
    assert at.values == {"a": "1"}


async def test_a_key_answers_for_a_part_again(at):
    act = await move(at)
    first = await at.person().undo.run(id=act, only=names("a"), key="k")
    again = await at.person().undo.run(id=act, only=names("a"), key="k")
    assert (told(again), again.act) == (told(first), first.act)


async def test_an_act_stays_in_the_log_as_long_as_what_took_back_a_part(at):
    act = await move(at)
    part = await at.person().undo.run(id=act, only=names("a"))
    await at.change("UPDATE undo_acted SET at = '2001-01-01T00:00:00.000Z' WHERE id = ?", act)
    assert (await at.person().undo.gc()).removed == 0
    await at.change("UPDATE undo_acted SET at = '2001-01-01T00:00:00.000Z'")
    assert (await at.person().undo.gc()).removed == 3
    with pytest.raises(NotFoundError):
        await at.person().undo.show(id=part.act)
