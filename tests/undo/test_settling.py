"""Acts whose outcome nobody knows: looked at, and settled by the person's word."""

import pytest

from takeback import ConflictError, NotFoundError, RefusedError, TakebackError
from takeback.errors import UsageError
from tests.undo.house import house

pytestmark = pytest.mark.anyio

TOUCHED = [{"resource": "notes:a", "before": "absent", "after": "v:1"}]
ITEMS = {"items": [{"key": "a", "value": None, "base": "1"}]}
BEGUN = {
    "tool": "notes.put",
    "summary": "put a",
    "inverse_tool": "notes.restore",
    "inverse_input": ITEMS,
    "touched": TOUCHED,
}


async def begin(at, **changes):
    return (await at.module().undo.begin({**BEGUN, **changes})).id


async def unknown(at, **changes):
    """An act whose note is neither as before nor as after."""
    at.values["a"] = "neither"
    act = await begin(at, **changes)
    assert (await at.module().undo.abandon(id=act)).state == "unknown"
    return act


# ---------------------------------------------------------------- by looking


@pytest.mark.parametrize(("now", "state"), [(None, "abandoned"), ("1", "done"), ("neither", "unknown")])
async def test_abandon_looks_at_what_was_to_be_touched(at, now, state):
    act = await begin(at)
    at.notebook.apply({"a": now})
    assert (await at.module().undo.abandon(id=act)).state == state
    assert await at.state(act) == state


async def test_an_act_that_names_nothing_can_t_be_looked_at(at):
    act = await begin(at, touched=[])
    assert (await at.module().undo.abandon(id=act)).state == "unknown"


async def test_an_effect_that_failed_is_abandoned_and_one_that_came_through_is_done(at):
    at.notebook.refused = "b"
    with pytest.raises(Exception, match="refuses"):
        await at.agent().notes.batch(items=[{"key": "b", "value": "1"}], own="after-intent")
    (row,) = await at.rows()
    assert row["state"] == "abandoned"
    at.notebook.refused = "c"
    with pytest.raises(Exception, match="refuses"):
        await at.agent().notes.batch(items=[{"key": "c", "value": "1"}], own="around")
    assert [row["state"] for row in await at.rows()] == ["abandoned", "done"]
    assert at.values == {"batch": "ran"}
    await at.person().undo.rewind(session="s1")
    assert at.values == {}


async def test_abandon_and_confirm_after_the_fact_say_what_is(at):
    act = await begin(at)
    await at.module().undo.confirm(id=act)
    assert (await at.module().undo.abandon(id=act)).state == "done"
    other = await begin(at)
    await at.module().undo.abandon(id=other)
    assert (await at.module().undo.confirm(id=other)).state == "abandoned"


async def test_confirm_replaces_what_was_foreseen(at):
    act = await begin(at)
    await at.module().undo.confirm(
        id=act,
        summary="put b",
        inverse_input={"items": [{"key": "b", "value": None, "base": "2"}]},
        touched=[{"resource": "notes:b", "before": "absent", "after": "v:2"}],
        blobs=["a" * 64],
    )
    at.values["b"] = "2"
    row = await at.act(act)
    assert (row.summary, [t.resource for t in row.touched]) == ("put b", ["notes:b"])
    assert (await at.module().undo.blobs()).digests == ["a" * 64]
    await at.person().undo.run(id=act)
    assert at.values == {}


async def test_confirm_with_a_resource_named_twice_is_refused(at):
    act = await begin(at)
    with pytest.raises(UsageError) as refused:
        await at.module().undo.confirm(id=act, touched=TOUCHED * 2)
    assert refused.value.code == "undo.twice_touched"
    assert await at.state(act) == "pending"


async def test_an_act_left_open_by_an_earlier_process_is_settled_at_start(home):
    async with house(home) as at:
        never = await begin(at)
        final = await begin(at, inverse_tool=None, inverse_input={}, final_reason="it left")
    async with house(home) as at:
        assert await at.state(never) == "abandoned"
        assert await at.state(final) == "abandoned"


async def test_an_act_of_this_process_is_left_alone_while_neighbours_come_and_go(at):
    act = await begin(at)
    await at.module("undo").undo.settle_crashed()
    assert await at.state(act) == "pending"


# ---------------------------------------------------------------- by the person's word


async def test_what_is_unknown_is_neither_undone_nor_redone(at):
    act = await unknown(at)
    for verb in ("run", "redo"):
        with pytest.raises(RefusedError) as refused:
            await at.person(present=True).call(f"undo.{verb}", {"id": act, "force": True})
        assert refused.value.code == "undo.not_undoable"
    assert at.values == {"a": "neither"}


async def test_it_happened(at):
    act = await unknown(at)
    answer = await at.person().undo.settle(id=act, happened=True)
    assert (answer.id, answer.state) == (act, "done")
    row = await at.act(act)
    assert (row.state, row.undoable) == ("done", True)
    at.values["a"] = "1"
    await at.person().undo.run(id=act)
    assert at.values == {}


async def test_it_did_not_happen(at):
    act = await unknown(at)
    assert (await at.person().undo.settle(id=act, happened=False)).state == "abandoned"
    outcome = await at.person().undo.run(id=act)
    assert [(r.state, r.already) for r in outcome.results] == [("abandoned", True)]


async def test_it_happened_but_has_no_inverse(at):
    act = await unknown(at, inverse_tool=None, inverse_input={}, final_reason="it left the machine")
    assert (await at.person().undo.settle(id=act, happened=True)).state == "final"
    row = await at.act(act)
    assert (row.undoable, row.reason) == (False, "it left the machine")


async def test_what_is_known_is_not_settled_again(at):
    act = await unknown(at)
    await at.person().undo.settle(id=act, happened=True)
    with pytest.raises(ConflictError) as refused:
        await at.person().undo.settle(id=act, happened=False)
    assert refused.value.code == "undo.settled"
    assert await at.state(act) == "done"


async def test_an_unknown_id_can_t_be_settled(at):
    with pytest.raises(NotFoundError) as refused:
        await at.person().undo.settle(id="nothing", happened=True)
    assert refused.value.code == "undo.unknown_act"


async def test_the_doctor_names_what_is_unknown(at):
    async def found():
        checks = (await at.person().kernel.doctor()).checks
        return next(c for c in checks if c.name == "acts with an unknown outcome")

    assert (await found()).ok
    await unknown(at)
    check = await found()
    assert (check.ok, check.detail) == (False, "1")
    assert "unknown" in check.hint


async def test_an_undo_whose_outcome_is_unknown_is_no_way_out(at):
    """Its acts are settled one by one; it is not taken for done."""
    acts = [(await at.agent().notes.put(key=key, value="1")).act for key in "abc"]
    at.notebook.failures = ["", "before", "before"]
    with pytest.raises(TakebackError):
        await at.person().undo.rewind(session="s1")
    run = (await at.person().undo.list()).acts[0]
    assert run.state == "unknown"
    for verb in ("run", "redo"):
        with pytest.raises(RefusedError) as refused:
            await at.person().call(f"undo.{verb}", {"id": run.id})
        assert refused.value.code == "undo.not_undoable"
    with pytest.raises(RefusedError) as no_act:
        await at.person().undo.settle(id=run.id, happened=True)
    assert no_act.value.code == "undo.not_an_act"
    assert [await at.state(act) for act in acts] == ["done", "failed", "unknown"]
    await at.person().undo.settle(id=acts[2], happened=True)
    assert await at.state(run.id) == "abandoned"


async def test_a_redo_whose_outcome_is_unknown_is_settled_with_its_acts(at):
    acts = [(await at.agent().notes.put(key=key, value="1")).act for key in "abc"]
    rewind = (await at.person().undo.rewind(session="s1")).act
    at.notebook.failures = ["", "before", "before"]
    with pytest.raises(TakebackError):
        await at.person().undo.redo(id=rewind)
    assert at.values == {"a": "1"}
    assert [await at.state(act) for act in acts] == ["unknown", "undone", "undone"]
    run = (await at.person().undo.list()).acts[0].id
    assert await at.state(run) == "unknown"
    await at.person().undo.settle(id=acts[0], happened=True)
    assert await at.state(run) == "abandoned"
    await at.person().undo.redo(id=rewind)
    assert at.values == {"a": "1", "b": "1", "c": "1"}
