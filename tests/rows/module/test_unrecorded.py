"""An undo whose rows of the log can't be written: begun, or confirmed after the database has committed."""

import pytest

from takeback import faults
from takeback.errors import TakebackError

pytestmark = pytest.mark.anyio


def fail_at(place, passes=0):
    """Fails with a full disk at a place, once it has been passed so many times."""
    left = [passes]

    def hook(name):
        if name == place:
            left[0] -= 1
            if left[0] == -1:
                raise TakebackError("store.full", "The disk is full", retryable=True)

    return faults.install(hook)


async def changed_twice(bench):
    first = bench.dump()
    acts = [
        (await bench.agent().rows.update(table="skill", key=1, set={"level": level})).act for level in (7, 8)
    ]
    return first, acts, bench.dump()


@pytest.mark.parametrize("passes", [0, 1])
async def test_what_could_not_be_recorded_does_not_stay_in_the_database(bench, passes):
    first, acts, here = await changed_twice(bench)
    stop = fail_at("undo.recording", passes)
    with pytest.raises(TakebackError):
        await bench.person().undo.rewind(session="s1")
    stop()
    assert bench.dump() == here
    assert {(await bench.person().undo.show(id=one)).act.state for one in acts} <= {"done", "failed"}
    await bench.person().undo.rewind(session="s1")
    assert bench.dump() == first


@pytest.mark.parametrize("passes", [0, 1])
async def test_an_undo_that_came_true_stands_though_its_rows_could_not_be_confirmed(bench, passes):
    first, acts, _ = await changed_twice(bench)
    stop = fail_at("undo.confirming", passes)
    outcome = await bench.person().undo.rewind(session="s1")
    stop()
    assert bench.dump() == first
    assert {result.state for result in outcome.results} == {"undone"}
    assert {(await bench.person().undo.show(id=one)).act.state for one in acts} == {"undone"}
    await bench.person().undo.redo(id=outcome.act)
    assert bench.sql("SELECT level FROM skill WHERE id = 1") == [(8,)]


@pytest.mark.parametrize("place", ["undo.recording", "store.begun", "store.ran"])
async def test_an_act_that_the_log_does_not_take_changes_nothing(bench, place):
    before = bench.dump()
    stop = fail_at(place)
    with pytest.raises(TakebackError):
        await bench.agent().rows.update(table="skill", key=1, set={"level": 7})
    stop()
    assert bench.dump() == before
    assert await bench.acts() == []
    await bench.agent().rows.update(table="skill", key=1, set={"level": 7})
    assert [act.state for act in await bench.acts()] == ["done"]
