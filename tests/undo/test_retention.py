"""Rows live for their time; pins stay, and what belongs together stays together."""

from datetime import UTC, datetime, timedelta

import anyio
import pytest
from anyio.lowlevel import checkpoint

from takeback.moments import stamp
from tests.undo.house import house

pytestmark = pytest.mark.anyio


async def put(at, key="a", value="1", **who):
    return (await at.agent(**who).notes.put(key=key, value=value)).act


async def age(at, days, *ids, roles=("act", "undo", "counter")):
    """Make rows as old as that: those named, else all of some roles."""
    when = stamp(datetime.now(UTC) - timedelta(days=days))
    for row in await at.rows():
        if row["id"] in ids or (not ids and row["role"] in roles):
            await at.change("UPDATE undo_acted SET at = ? WHERE id = ?", when, row["id"])


async def gc(at):
    return (await at.person().undo.gc()).removed


async def ids(at):
    return {row["id"] for row in await at.rows()}


async def test_rows_older_than_30_days_go(at):
    old = [await put(at, key) for key in "ab"]
    await age(at, 30.1)
    young = await put(at, "c")
    await age(at, 29.9, young)
    assert await gc(at) == 2
    assert await ids(at) == {young}
    assert await gc(at) == 0
    assert not await ids(at) & set(old)


async def test_what_a_row_touched_and_its_blobs_go_with_it(at):
    await at.module().undo.record(
        tool="notes.put",
        summary="put",
        final_reason="nothing",
        touched=[{"resource": "notes:a", "before": "absent", "after": "v:1"}],
        blobs=["0" * 64],
    )
    assert (await at.module().undo.blobs()).digests == ["0" * 64]
    await age(at, 31)
    await gc(at)
    assert (await at.module().undo.blobs()).digests == []
    assert await at.rows("SELECT * FROM undo_touched") == []


async def test_retention_is_a_setting(home):
    async with house(home, settings={"undo": {"retention_days": 7}}) as at:
        await put(at)
        await age(at, 8)
        assert await gc(at) == 1


async def test_old_rows_go_at_start(home):
    async with house(home) as at:
        await put(at)
        await age(at, 31)
    async with house(home) as at:
        with anyio.fail_after(10):
            while await at.rows():
                await checkpoint()


async def test_it_says_so_once_after_the_rows_are_gone(at):
    for key in "abc":
        await put(at, key)
    await age(at, 31)
    await gc(at)
    await gc(at)
    stored = await at.kernel.events.after(0, limit=1000)
    assert [e.data for e in stored if e.kind == "undo.expired"] == [{"removed": 3}]


async def test_very_many_rows_go(at):
    acts = [await put(at, str(n)) for n in range(3)]
    await at.change(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)"
        " INSERT INTO undo_acted (id, at, actor, via, recorded_by, actor_kind, path, role, tool, input,"
        " summary, why, state) SELECT 'x' || i, '2020-01-01T00:00:00.000Z', 'cli:person', 'cli:person',"
        " 'module:notes', 'person', 'p' || i, 'act', 'notes.put', '{}', 's', '[]', 'done' FROM n"
    )
    assert await gc(at) == 2500
    assert await ids(at) == set(acts)


@pytest.mark.parametrize("state", ["pending", "undoing"])
async def test_what_is_going_on_stays(at, state):
    await put(at)
    await at.change("UPDATE undo_acted SET state = ?", state)
    await age(at, 99)
    assert await gc(at) == 0


async def test_a_pin_keeps_an_act_and_lets_it_go_again(at):
    acts = [await put(at, key) for key in "ab"]
    assert (await at.person().undo.pin(id=acts[0])).pinned
    await age(at, 99)
    assert await gc(at) == 1
    assert await ids(at) == {acts[0]}
    await at.person().undo.run(id=acts[0])
    assert at.values == {"b": "1"}
    assert not (await at.person().undo.pin(id=acts[0], pinned=False)).pinned
    await age(at, 99)
    assert await gc(at) == 3


async def test_an_old_act_with_a_young_undo_can_be_redone(at):
    act = await put(at)
    undo = (await at.person().undo.run(id=act)).act
    await age(at, 99, act)
    assert await gc(at) == 0
    await at.person().undo.run(id=undo)
    assert at.values == {"a": "1"}


async def test_an_old_undo_of_a_pinned_act_stays_with_its_counters(at):
    act = await put(at)
    await at.person().undo.run(id=act)
    await at.person().undo.pin(id=act)
    await age(at, 99)
    assert await gc(at) == 0
    await at.person().undo.redo(id=act)
    assert at.values == {"a": "1"}


async def test_a_pinned_undo_keeps_its_acts(at):
    act = await put(at)
    undo = (await at.person().undo.run(id=act)).act
    await at.person().undo.pin(id=undo)
    await age(at, 99)
    assert await gc(at) == 0
    await at.person().undo.redo(id=act)
    assert at.values == {"a": "1"}


async def test_a_rewind_stays_whole(at):
    acts = [await put(at, key) for key in "abc"]
    rewind = (await at.person().undo.rewind(session="s1")).act
    await at.person().undo.pin(id=acts[1])
    await age(at, 99)
    assert await gc(at) == 0
    await at.person().undo.run(id=rewind)
    assert at.values == {"a": "1", "b": "1", "c": "1"}


async def test_all_of_it_goes_when_all_of_it_is_old(at):
    for key in "abc":
        await put(at, key)
    rewind = (await at.person().undo.rewind(session="s1")).act
    await at.person().undo.run(id=rewind)
    await age(at, 99)
    assert await gc(at) == len({*"abc"}) * 3 + 2
    assert await at.rows() == []


async def test_an_old_act_that_was_redone_of_late_stays_with_the_redo(at):
    act = await put(at)
    await at.person().undo.run(id=act)
    await age(at, 99)
    redo = (await at.person().undo.redo(id=act)).act
    assert await gc(at) == 0
    await at.person().undo.run(id=redo)
    assert at.values == {}


@pytest.mark.parametrize("own", ["around", "after"])
@pytest.mark.parametrize("pinned", ["parent", "child"])
async def test_a_family_stays_with_its_pinned_member(at, own, pinned):
    items = [{"key": key, "value": "1"} for key in "ab"]
    parent = (await at.agent().notes.batch(items=items, own=own)).act
    children = (await at.person().undo.show(id=parent)).children
    await at.person().undo.pin(id=parent if pinned == "parent" else children[0].id)
    await age(at, 99)
    assert await gc(at) == 0
    await at.person().undo.run(id=parent)
    assert at.values == {}


async def test_a_family_with_a_young_child_stays(at):
    items = [{"key": key, "value": "1"} for key in "ab"]
    parent = (await at.agent().notes.batch(items=items, own="around")).act
    await age(at, 99)
    children = (await at.person().undo.show(id=parent)).children
    await age(at, 1, children[0].id)
    assert await gc(at) == 0


async def test_strangers_of_a_pinned_act_go(at):
    keep, other = [await put(at, key) for key in "ab"]
    for act in (keep, other):
        await at.person().undo.run(id=act)
    await at.person().undo.pin(id=keep)
    await age(at, 99)
    assert await gc(at) == 3
    assert len(await at.rows()) == 3


async def test_a_partial_redo_survives_the_undo_it_came_from(at):
    """The rest of the rewind expires; the act that was redone of late, and its redo, can still be undone."""
    acts = [await put(at, key) for key in "ab"]
    await at.person().undo.rewind(session="s1")
    await age(at, 99)
    redo = (await at.person().undo.redo(id=acts[0])).act
    await gc(at)
    await at.person().undo.run(id=redo)
    assert at.values == {}
    await at.person().undo.redo(id=acts[0])
    assert at.values == {"a": "1"}


async def test_a_time_of_ones_own_and_a_dry_run_that_only_counts(at):
    old, young = await put(at, "a"), await put(at, "b")
    await age(at, 8, old)
    told = await at.person().call("undo.gc", {"days": 7}, rehearsal_={})
    assert (told.removed, await ids(at)) == (1, {old, young})
    assert (await at.person().call("undo.gc", {"days": 9})).removed == 0
    assert (await at.person().call("undo.gc", {"days": 7})).removed == 1
    assert await ids(at) == {young}
