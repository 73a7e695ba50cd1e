"""An act that was redone stands where its redo put it, and as its redo left it."""

import pytest

from takeback import ConflictError

pytestmark = pytest.mark.anyio


async def test_what_a_redo_merged_is_what_the_next_undo_takes_out(at):
    at.notebook.merges = True
    me = at.person()
    await at.agent().notes.put(key="a", value="old,older")
    act = (await at.agent().notes.put(key="a", value="new,newer")).act
    await me.undo.rewind(session="s1")
    at.values["a"] = "my,own"
    await me.undo.redo(id=act)
    assert at.values == {"a": "my,new,newer,own"}
    await me.undo.run(id=act)
    assert at.values == {"a": "my,own"}
    await me.undo.redo(id=act)
    await me.undo.rewind(session="s1")
    assert at.values == {"a": "my,own"}


async def test_what_another_act_has_made_so_is_not_redone_beside_it(at):
    me = at.person()
    mine = (await at.agent().notes.put(key="a", value="same")).act
    await me.undo.run(id=mine)
    other = (await at.agent("vega").notes.put(key="a", value="same")).act
    await me.undo.run(id=other)
    await me.undo.redo(id=mine)
    with pytest.raises(ConflictError) as refused:
        await me.undo.redo(id=other)
    assert refused.value.code == "undo.dependents"
    assert at.values == {"a": "same"}
    assert await at.state(other) == "undone"


async def test_a_redo_that_had_nothing_to_do_leaves_nothing_to_undo(at):
    me = at.person()
    put = (await at.agent().notes.put(key="a", value="1")).act
    gone = (await at.agent().notes.delete(key="a")).act
    await me.undo.run(id=gone)
    await me.undo.run(id=put)
    await me.undo.redo(id=gone)
    assert (at.values, await at.state(gone)) == ({}, "done")
    await me.undo.rewind(session="s1")
    assert (at.values, await at.state(gone)) == ({}, "undone")


async def test_an_undo_that_had_nothing_to_do_is_redone_for_good(at):
    """Its act is done again only if it is so, also where an older act was redone beneath it meanwhile."""
    me = at.person()
    put = (await at.agent().notes.put(key="a", value="1")).act
    gone = (await at.agent().notes.delete(key="a")).act
    await me.undo.run(id=put, dependents=True)
    await me.undo.redo(id=gone)
    await me.undo.redo(id=put)
    assert at.values == {"a": "1"}
    taken = await me.undo.run(id=gone)
    assert (at.values, await at.state(gone)) == ({"a": "1"}, "undone")
    await me.undo.redo(id=taken.act)
    assert (at.values, await at.state(gone)) == ({}, "done")
    await me.undo.run(id=gone)
    assert (at.values, await at.state(gone)) == ({"a": "1"}, "undone")
    await me.undo.rewind(session="s1")
    assert at.values == {}


async def test_an_undo_that_had_nothing_to_do_for_a_note_is_redone_for_both(at):
    """Of two notes that the undo had brought back by an act each, the redo found one deleted already."""
    me = at.person()
    at.notebook.inverse = "notes.restore_each"
    puts = [(await at.agent().notes.put(key=key, value="1")).act for key in "ab"]
    both = (await at.agent().notes.fill(keys=["a", "b"], value="2")).act
    await me.undo.run(id=both)
    at.values["a"] = "2"
    await me.undo.redo(id=both)
    assert at.values == {"a": "2", "b": "2"}
    await me.undo.run(id=both)
    assert at.values == {"a": "2", "b": "1"}
    at.values["a"] = "1"
    await me.undo.redo(id=both)
    assert (at.values, await at.state(both)) == ({"a": "2", "b": "2"}, "done")
    await me.undo.run(id=both)
    assert at.values == {"a": "1", "b": "1"}
    assert [await at.state(act) for act in puts] == ["done", "done"]


async def test_an_act_that_changed_nothing_is_redone_in_its_place(at):
    """Nothing ran for it, so it stands after what was redone before it, and on what that left."""
    me = at.person()
    acts = [(await at.agent().notes.put(key="a", value="1")).act for _ in range(2)]
    taken = await me.undo.run(id=acts[0], dependents=True)
    await me.undo.redo(id=taken.act)
    assert at.values == {"a": "1"}
    with pytest.raises(ConflictError) as refused:
        await me.undo.run(id=acts[0])
    assert refused.value.code == "undo.dependents"
    await me.undo.run(id=acts[1])
    await me.undo.run(id=acts[0])
    assert at.values == {}


async def test_a_redo_that_has_nothing_to_run_puts_no_act_on_top_of_what_it_is_not(at):
    me = at.person()
    await at.agent().notes.put(key="a", value="2")
    same = (await at.agent().notes.put(key="a", value="2")).act
    newer = (await at.agent().notes.put(key="a", value="1")).act
    taken = await me.undo.run(id=same, dependents=True)
    await me.undo.redo(id=taken.act)
    await me.undo.run(id=same)
    await me.undo.redo(id=same)
    assert (at.values, await at.state(same)) == ({"a": "1"}, "done")
    rewind = await me.undo.rewind(session="s1")
    assert [step.act for step in rewind.plan.steps][:2] == [newer, same]
    assert at.values == {}


async def test_nothing_is_called_redone_over_what_came_since(at):
    """Also where the redo would have nothing to run, since the undo had nothing to."""
    me = at.person()
    put = (await at.agent().notes.put(key="a", value="1")).act
    gone = (await at.agent().notes.delete(key="a")).act
    for tool, act in (("run", gone), ("run", put), ("redo", gone), ("run", gone)):
        await me.call(f"undo.{tool}", {"id": act})
    newer = (await at.agent().notes.put(key="a", value="2")).act
    with pytest.raises(ConflictError) as refused:
        await me.undo.redo(id=gone)
    assert refused.value.code == "undo.dependents"
    assert (at.values, await at.state(gone)) == ({"a": "2"}, "undone")
    await me.undo.run(id=newer)
    await me.undo.redo(id=gone)
    assert (at.values, await at.state(gone)) == ({}, "done")


async def test_what_had_nothing_to_do_is_redone_over_an_older_act_that_was(at):
    me = at.person()
    put = (await at.agent().notes.put(key="a", value="1")).act
    gone = (await at.agent().notes.delete(key="a")).act
    for tool, act in (("run", gone), ("run", put), ("redo", gone), ("run", gone), ("redo", put)):
        await me.call(f"undo.{tool}", {"id": act})
    assert at.values == {"a": "1"}
    at.values["a"] = "mine"
    with pytest.raises(ConflictError) as refused:
        await me.undo.redo(id=gone)
    assert refused.value.code == "undo.conflict"
    at.values["a"] = "1"
    await me.undo.redo(id=gone)
    assert (at.values, await at.state(gone)) == ({}, "done")


async def test_nothing_is_called_redone_when_it_is_not_as_the_undo_found_it(at):
    me = at.person()
    put = (await at.agent().notes.put(key="a", value="1")).act
    del at.values["a"]
    await me.undo.run(id=put)
    at.values["a"] = "mine"
    for force in (False, True):
        with pytest.raises(ConflictError) as refused:
            await at.person(present=True).undo.redo(id=put, force=force)
        assert refused.value.code == "undo.conflict"
    assert (at.values, await at.state(put)) == ({"a": "mine"}, "undone")


async def test_what_had_nothing_to_do_keeps_its_place_in_a_rewind_and_its_redo(at):
    me = at.person()
    put = (await at.agent().notes.put(key="a", value="1")).act
    gone = (await at.agent().notes.delete(key="a")).act
    for tool, act in (("run", gone), ("run", put), ("redo", gone)):
        await me.call(f"undo.{tool}", {"id": act})
    newer = (await at.agent().notes.put(key="a", value="2")).act
    rewind = await me.undo.rewind(session="s1")
    assert [step.act for step in rewind.plan.steps] == [newer, gone]
    redo = await me.undo.redo(id=rewind.act)
    assert [step.act for step in redo.plan.steps] == [gone, newer]
    assert at.values == {"a": "2"}
    assert [await at.state(act) for act in (put, gone, newer)] == ["undone", "done", "done"]


async def test_a_redone_act_is_later_than_what_was_done_before_its_redo(at):
    me = at.person()
    first = (await at.agent().notes.put(key="a", value="1")).act
    await me.undo.run(id=first)
    second = (await at.agent("vega").notes.put(key="b", value="1")).act
    await me.undo.redo(id=first)
    outcome = await me.undo.rewind(since="2000-01-01T00:00:00Z")
    assert [step.act for step in outcome.plan.steps] == [first, second]
    assert at.values == {}


async def test_acts_redone_together_rest_on_each_other_as_before(at):
    me = at.person()
    first = (await at.agent().notes.put(key="a", value="1")).act
    second = (await at.agent().notes.put(key="a", value="2")).act
    rewind = (await me.undo.rewind(session="s1")).act
    await me.undo.redo(id=rewind)
    with pytest.raises(ConflictError) as refused:
        await me.undo.run(id=first)
    assert refused.value.code == "undo.dependents"
    outcome = await me.undo.run(id=first, dependents=True)
    assert [step.act for step in outcome.plan.steps] == [second, first]
    assert at.values == {}
