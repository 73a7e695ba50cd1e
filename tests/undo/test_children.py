"""Acts recorded inside another's call go with it, and can be taken back alone."""

import pytest

from takeback import RefusedError

pytestmark = pytest.mark.anyio

ITEMS = [{"key": "a", "value": "1"}, {"key": "b", "value": "1"}]


async def family(at, own, **more):
    """Run a batch and answer the ids of its own act and of its children, oldest first."""
    parent = (await at.agent().notes.batch(items=ITEMS, own=own, **more)).act
    shown = await at.person().undo.show(id=parent)
    return parent, [child.id for child in reversed(shown.children)]


@pytest.mark.parametrize("own", ["around", "after"])
async def test_children_go_with_their_parent(at, own):
    parent, children = await family(at, own)
    assert len(children) == 2
    assert at.values == {"a": "1", "b": "1", "batch": "ran"}
    outcome = await at.person().undo.run(id=parent)
    assert at.values == {}
    assert {r.id: r.state for r in outcome.results} == dict.fromkeys([parent, *children], "undone")
    await at.person().undo.redo(id=parent)
    assert at.values == {"a": "1", "b": "1", "batch": "ran"}
    assert [await at.state(act) for act in (parent, *children)] == ["done"] * 3


@pytest.mark.parametrize("own", ["around", "after"])
async def test_steps_are_strictly_newest_first(at, own):
    parent, _children = await family(at, own)
    await at.person().undo.run(id=parent)
    newest_first = [["b"], ["a"], ["batch"]] if own == "around" else [["batch"], ["b"], ["a"]]
    assert at.notebook.ran == newest_first


@pytest.mark.parametrize("own", ["around", "after"])
async def test_a_parent_and_children_on_the_same_note(at, own):
    items = [{"key": "batch", "value": "child"}]
    at.values["batch"] = "first"
    act = (await at.agent().notes.batch(items=items, own=own, then="last")).act
    assert at.values == {"batch": "last"}
    await at.person().undo.run(id=act)
    assert at.values == {"batch": "first"}
    await at.person().undo.redo(id=act)
    assert at.values == {"batch": "last"}


@pytest.mark.parametrize("own", ["around", "after"])
async def test_the_list_shows_the_parent_and_show_its_children(at, own):
    parent, children = await family(at, own)
    assert [act.id for act in (await at.person().undo.list()).acts] == [parent]
    child = await at.act(children[0])
    assert child.parent == parent
    assert child.tool == "notes.put"
    assert [act.id for act in (await at.person().undo.list(id_prefix=children[0])).acts] == [children[0]]


async def test_without_an_act_of_its_own_a_call_makes_no_family(at):
    await at.agent().notes.batch(items=ITEMS, own="never")
    listed = (await at.person().undo.list()).acts
    assert [(act.tool, act.parent) for act in listed] == [("notes.put", None)] * 2


async def test_a_child_is_undone_alone(at):
    parent, children = await family(at, "around")
    await at.person().undo.run(id=children[0])
    assert at.values == {"b": "1", "batch": "ran"}
    assert [await at.state(act) for act in (parent, *children)] == ["done", "undone", "done"]
    outcome = await at.person().undo.run(id=parent)
    assert {r.id for r in outcome.results} == {parent, children[1]}
    assert at.values == {}


async def test_a_child_is_redone_alone(at):
    parent, children = await family(at, "around")
    await at.person().undo.run(id=parent)
    await at.person().undo.redo(id=children[0])
    assert at.values == {"a": "1"}
    assert [await at.state(act) for act in (parent, *children)] == ["undone", "done", "undone"]
    await at.person().undo.redo(id=parent)
    assert at.values == {"a": "1", "b": "1", "batch": "ran"}


async def test_undoing_a_parent_again_takes_the_redone_child_back(at):
    parent, children = await family(at, "around")
    await at.person().undo.run(id=parent)
    await at.person().undo.redo(id=children[0])
    outcome = await at.person().undo.run(id=parent)
    assert {r.id: (r.state, r.already) for r in outcome.results} == {children[0]: ("undone", False)}
    assert at.values == {}


async def test_a_redone_child_is_part_of_a_rewind(at):
    parent, children = await family(at, "around")
    await at.person().undo.run(id=parent)
    await at.person().undo.redo(id=children[0])
    await at.person().undo.rewind(session="s1")
    assert at.values == {}


async def test_children_of_a_call_that_failed_are_part_of_a_rewind(at):
    """Their parent never happened, they did."""
    items = [*ITEMS, {"key": "c", "value": "1"}]
    at.notebook.refused = "c"
    with pytest.raises(Exception, match="refuses"):
        await at.agent().notes.batch(items=items, own="after-intent")
    assert at.values == {"a": "1", "b": "1"}
    outcome = await at.person().undo.rewind(session="s1")
    assert at.values == {}
    assert len(outcome.results) == 2


async def test_a_child_s_redo_after_its_parent_s_does_not_run_again(at):
    parent, children = await family(at, "around")
    await at.person().undo.run(id=parent)
    await at.person().undo.redo(id=parent)
    ran = len(at.notebook.ran)
    outcome = await at.person().undo.redo(id=children[0])
    assert [(r.state, r.already) for r in outcome.results] == [("done", True)]
    assert len(at.notebook.ran) == ran


async def test_an_act_that_can_t_be_taken_back_holds_its_children(at):
    parent, children = await family(at, "final")
    assert await at.state(parent) == "final"
    with pytest.raises(RefusedError) as refused:
        await at.person().undo.run(id=parent)
    assert refused.value.code == "undo.not_undoable"
    assert at.values == {"a": "1", "b": "1"}
    await at.person().undo.rewind(session="s1", skip_conflicts=True)
    assert at.values == {}
    assert [await at.state(act) for act in (parent, *children)] == ["final", "undone", "undone"]


async def test_a_child_that_is_left_out_keeps_its_own_state(at):
    parent, children = await family(at, "around")
    at.values["b"] = "the person's"
    outcome = await at.person().undo.rewind(session="s1", skip_conflicts=True)
    assert at.values == {"b": "the person's"}
    assert {r.id for r in outcome.results} == {parent, children[0]}
    assert [await at.state(act) for act in (parent, *children)] == ["undone", "undone", "done"]


async def test_grandchildren_go_along(at):
    inner = {"items": ITEMS, "own": "around", "key": "inner"}
    outer = (await at.agent().notes.nest(key="outer", inner=inner)).act
    assert at.values == {"a": "1", "b": "1", "inner": "ran", "outer": "ran"}
    outcome = await at.person().undo.run(id=outer)
    assert at.values == {}
    assert len(outcome.results) == 4
