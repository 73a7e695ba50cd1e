"""Undo, redo, undo again: each says the truth, and `already` never lies."""

import pytest

from takeback import ConflictError, RefusedError, UsageError

pytestmark = pytest.mark.anyio


def told(outcome):
    return [(result.id, result.state, result.already) for result in outcome.results]


@pytest.fixture
async def rewound(at):
    """Three acts on three keys, taken back by one rewind: the ids, and the rewind's own."""
    ids = [(await at.agent().notes.put(key=key, value="1")).act for key in "abc"]
    outcome = await at.person().undo.rewind(session="s1")
    assert at.values == {}
    return ids, outcome.act


async def test_undo_redo_undo(at):
    me = at.person()
    act = (await at.agent().notes.put(key="a", value="1")).act
    assert told(await me.undo.run(id=act)) == [(act, "undone", False)]
    assert told(await me.undo.redo(id=act)) == [(act, "done", False)]
    assert at.values == {"a": "1"}
    assert told(await me.undo.run(id=act)) == [(act, "undone", False)]
    assert at.values == {}
    assert told(await me.undo.redo(id=act)) == [(act, "done", False)]
    assert at.values == {"a": "1"}


async def test_undone_already(at):
    me = at.person()
    act = (await at.agent().notes.put(key="a", value="1")).act
    first = await me.undo.run(id=act)
    second = await me.undo.run(id=act)
    assert told(second) == [(act, "undone", True)]
    assert (second.act, second.plan.steps) == (None, [])
    assert (await at.act(act)).undone_in == first.act
    assert at.notebook.ran == [["a"]]


async def test_undone_already_with_the_digest_of_the_plan_that_ran(at):
    me = at.person()
    act = (await at.agent().notes.put(key="a", value="1")).act
    digest = (await me.undo.preview(id=act)).plan.digest
    await me.undo.run(id=act, digest=digest)
    assert told(await me.undo.run(id=act, digest=digest)) == [(act, "undone", True)]


async def test_done_already(at):
    act = (await at.agent().notes.put(key="a", value="1")).act
    assert told(await at.person().undo.redo(id=act)) == [(act, "done", True)]


async def test_the_row_says_who_took_it_back_and_when_and_forgets_it_when_redone(at):
    me = at.person("laptop")
    act = (await at.agent().notes.put(key="a", value="1")).act
    outcome = await me.undo.run(id=act)
    row = await at.act(act)
    assert (row.state, row.undone_by, row.undone_in) == ("undone", "cli:person:laptop", outcome.act)
    assert row.undone_at is not None
    await me.undo.redo(id=act)
    row = await at.act(act)
    assert (row.state, row.undone_by, row.undone_in, row.undone_at) == ("done", None, None, None)


async def test_undo_of_a_rewind_brings_all_of_it_back(at, rewound):
    ids, rewind = rewound
    outcome = await at.person().undo.run(id=rewind)
    assert sorted(told(outcome)) == sorted((act, "done", False) for act in ids)
    assert at.values == {"a": "1", "b": "1", "c": "1"}
    assert await at.state(rewind) == "undone"
    assert told(await at.person().undo.run(id=rewind)) == [(rewind, "undone", True)]


async def test_redo_of_a_rewind_is_the_same(at, rewound):
    _ids, rewind = rewound
    assert len((await at.person().undo.redo(id=rewind)).results) == 3
    assert at.values == {"a": "1", "b": "1", "c": "1"}


async def test_redo_of_one_act_of_a_rewind(at, rewound):
    ids, rewind = rewound
    assert told(await at.person().undo.redo(id=ids[1])) == [(ids[1], "done", False)]
    assert at.values == {"b": "1"}
    assert await at.state(rewind) == "done"
    rest = await at.person().undo.redo(id=rewind)
    assert {result.id for result in rest.results} == {ids[0], ids[2]}
    assert at.values == {"a": "1", "b": "1", "c": "1"}
    assert await at.state(rewind) == "undone"


async def test_a_rewind_is_superseded_when_each_of_its_acts_was_redone(at, rewound):
    ids, rewind = rewound
    for act in ids:
        await at.person().undo.redo(id=act)
    assert await at.state(rewind) == "undone"
    assert told(await at.person().undo.run(id=rewind)) == [(rewind, "undone", True)]


async def test_undo_of_a_redo(at):
    me = at.person()
    act = (await at.agent().notes.put(key="a", value="1")).act
    await me.undo.run(id=act)
    redo = (await me.undo.redo(id=act)).act
    outcome = await me.undo.run(id=redo)
    assert told(outcome) == [(act, "undone", False)]
    assert at.values == {}
    assert await at.state(redo) == "undone"
    assert (await at.act(act)).undone_in == outcome.act
    assert told(await me.undo.redo(id=act)) == [(act, "done", False)]
    assert at.values == {"a": "1"}


async def test_every_plan_names_the_acts_themselves(at):
    me = at.person()
    act = (await at.agent().notes.put(key="a", value="1")).act
    outcomes = [await me.call(f"undo.{verb}", {"id": act}) for verb in ("run", "redo", "run", "redo")]
    outcomes.append(await me.undo.run(id=outcomes[-1].act))
    for outcome in outcomes:
        assert [(step.act, step.summary) for step in outcome.plan.steps] == [(act, "put a")]
    assert (await at.act(outcomes[-1].act)).summary == "undo: put a"


async def test_redo_of_a_redo_that_stands_is_done_already(at):
    me = at.person()
    act = (await at.agent().notes.put(key="a", value="1")).act
    await me.undo.run(id=act)
    redo = (await me.undo.redo(id=act)).act
    assert told(await me.undo.redo(id=redo)) == [(redo, "done", True)]
    assert at.values == {"a": "1"}


async def test_redo_of_a_redo_that_was_taken_back(at):
    me = at.person()
    act = (await at.agent().notes.put(key="a", value="1")).act
    await me.undo.run(id=act)
    redo = (await me.undo.redo(id=act)).act
    await me.undo.run(id=redo)
    assert told(await me.undo.redo(id=redo)) == [(act, "done", False)]
    assert at.values == {"a": "1"}


async def test_a_redo_is_superseded_when_its_act_is_undone_directly(at):
    me = at.person()
    act = (await at.agent().notes.put(key="a", value="1")).act
    await me.undo.run(id=act)
    redo = (await me.undo.redo(id=act)).act
    await me.undo.run(id=act)
    assert await at.state(redo) == "undone"
    assert not (await at.act(redo)).undoable
    assert told(await me.undo.run(id=redo)) == [(redo, "undone", True)]


async def test_many_rounds(at):
    me = at.person()
    first = (await at.agent().notes.put(key="a", value="1")).act
    second = (await at.agent().notes.put(key="a", value="2")).act
    for _ in range(5):
        rewind = (await me.undo.rewind(session="s1")).act
        assert at.values == {}
        await me.undo.run(id=rewind)
        assert at.values == {"a": "2"}
    for act, left in ((second, {"a": "1"}), (first, {})):
        await me.undo.run(id=act)
        assert at.values == left
    for act, left in ((first, {"a": "1"}), (second, {"a": "2"})):
        await me.undo.redo(id=act)
        assert at.values == left


async def test_redo_out_of_order_is_a_conflict(at):
    first = (await at.agent().notes.put(key="a", value="1")).act
    second = (await at.agent().notes.put(key="a", value="2")).act
    await at.person().undo.rewind(session="s1")
    with pytest.raises(ConflictError):
        await at.person().undo.redo(id=second)
    assert at.values == {}
    assert [await at.state(act) for act in (first, second)] == ["undone", "undone"]


async def test_redo_over_somebody_s_later_work_is_a_conflict(at):
    act = (await at.agent().notes.put(key="a", value="1")).act
    await at.person().undo.run(id=act)
    await at.agent("ada").notes.put(key="a", value="ada's")
    with pytest.raises(ConflictError):
        await at.person().undo.redo(id=act)
    assert at.values == {"a": "ada's"}


async def test_redo_of_what_undoing_left_unchanged(at):
    me = at.person()
    act = (await at.agent().notes.put(key="a", value="1")).act
    del at.values["a"]
    outcome = await me.undo.run(id=act)
    assert [e.action for e in outcome.plan.steps[0].effects] == ["skip"]
    assert told(await me.undo.redo(id=act)) == [(act, "done", False)]
    assert at.values == {}
    assert await at.state(outcome.act) == "undone"


async def test_redo_where_the_inverse_recorded_no_way_back(at):
    at.notebook.inverse = "notes.restore_plain"
    act = (await at.agent().notes.put(key="a", value="1")).act
    await at.person().undo.run(id=act)
    plan = (await at.person().undo.preview(id=act, redo=True)).plan
    assert [step.status for step in plan.steps] == ["not_undoable"]
    with pytest.raises(RefusedError) as refused:
        await at.person().undo.redo(id=act)
    assert refused.value.code == "undo.not_undoable"
    assert await at.state(act) == "undone"


async def test_undo_of_an_act_that_never_happened(at):
    begun = await at.module().undo.begin(
        tool="notes.put",
        summary="never",
        inverse_tool="notes.restore",
        inverse_input={"items": []},
        touched=[{"resource": "notes:a", "before": "absent", "after": "v:1"}],
    )
    assert (await at.module().undo.abandon(id=begun.id)).state == "abandoned"
    assert told(await at.person().undo.run(id=begun.id)) == [(begun.id, "abandoned", True)]
    with pytest.raises(RefusedError) as refused:
        await at.person().undo.redo(id=begun.id)
    assert refused.value.code == "undo.not_undoable"


async def test_an_act_under_way_can_neither_be_undone_nor_redone(at):
    begun = await at.module().undo.begin(
        tool="notes.put", summary="soon", inverse_tool="notes.restore", inverse_input={"items": []}
    )
    for verb in ("run", "redo"):
        with pytest.raises(RefusedError) as refused:
            await at.person().call(f"undo.{verb}", {"id": begun.id})
        assert refused.value.code == "undo.not_undoable"
    assert await at.state(begun.id) == "pending"


async def test_a_retry_with_the_same_key_runs_nothing_twice(at):
    me = at.person()
    act = (await at.agent().notes.put(key="a", value="1")).act
    first = await me.undo.run(id=act, key="k1")
    again = await me.undo.run(id=act, key="k1")
    assert again == first
    assert at.notebook.ran == [["a"]]


async def test_a_retry_of_a_rewind_with_the_same_key_takes_nothing_new_back(at):
    me = at.person()
    await at.agent().notes.put(key="a", value="1")
    first = await me.undo.rewind(session="s1", key="k1")
    await at.agent().notes.put(key="b", value="1")
    assert await me.undo.rewind(session="s1", key="k1") == first
    assert at.values == {"b": "1"}


async def test_a_key_used_for_something_else_is_refused(at):
    me = at.person()
    acts = [(await at.agent().notes.put(key=key, value="1")).act for key in "ab"]
    await me.undo.run(id=acts[0], key="k1")
    with pytest.raises(UsageError) as refused:
        await me.undo.run(id=acts[1], key="k1")
    assert refused.value.code == "undo.key_reused"
    assert at.values == {"b": "1"}


async def test_a_key_whose_run_failed_can_be_used_again(at):
    me = at.person()
    act = (await at.agent().notes.put(key="a", value="1")).act
    at.notebook.break_next()
    with pytest.raises(Exception, match="stuck"):
        await me.undo.run(id=act, key="k1")
    assert told(await me.undo.run(id=act, key="k1")) == [(act, "undone", False)]


async def test_a_key_is_its_caller_s_own(at):
    act = (await at.agent().notes.put(key="a", value="1")).act
    await at.agent().undo.run(id=act, key="k1")
    assert told(await at.person().undo.run(id=act, key="k1")) == [(act, "undone", True)]


async def test_a_key_in_a_rehearsal_says_nothing_of_an_earlier_run(at):
    me = at.person()
    act = (await at.agent().notes.put(key="a", value="1")).act
    await me.undo.run(id=act, key="k1")
    await me.undo.redo(id=act)
    rehearsal = await me._replace(dry_run=True).undo.run(id=act, key="k1")
    assert rehearsal.results == []
    assert [step.act for step in rehearsal.plan.steps] == [act]
