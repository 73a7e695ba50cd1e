"""What an undo does when the world is against it for a while: it waits, says so, and loses nothing."""

import anyio
import anyio.lowlevel
import pytest

from takeback import TakebackError
from takeback_core.undo.runner import Runner
from tests.undo.house import house

pytestmark = pytest.mark.anyio

FULL = TakebackError("notes.full", "The notebook is full", "Make room.", retryable=True)


@pytest.fixture
def stubborn(at, monkeypatch):
    """Makes inverses fail in a way that time mends, while `on` is true."""

    class Stubborn:
        on = False
        after = 0

    real = Runner._invert

    async def invert(self, *args, **more):
        if Stubborn.on:
            if Stubborn.after == 0:
                raise FULL
            Stubborn.after -= 1
        await real(self, *args, **more)

    monkeypatch.setattr(Runner, "_invert", invert)
    return Stubborn


async def test_a_rewind_that_can_neither_go_on_nor_back_is_put_back_later(at, stubborn):
    acts = [(await at.agent().notes.put(key=key, value="1")).act for key in "abcde"]
    stubborn.on, stubborn.after = True, 2
    with pytest.raises(TakebackError) as failed:
        await at.person().undo.rewind(session="s1")
    assert "as it was before" not in failed.value.hint
    assert at.values == {"a": "1", "b": "1", "c": "1"}
    assert {await at.state(act) for act in acts} == {"undoing"}

    stubborn.on = False
    await at.person().undo.rewind(session="s1")
    assert at.values == {}
    assert {await at.state(act) for act in acts} == {"undone"}
    runs = await at.rows("SELECT state, reason FROM undo_acted WHERE role = 'undo' ORDER BY seq")
    assert [(run["state"], run["reason"]) for run in runs] == [
        ("abandoned", "taken back later"),
        ("done", None),
    ]


async def test_it_waits_as_long_as_it_takes(at, stubborn):
    act = (await at.agent().notes.put(key="a", value="1")).act
    (await at.agent().notes.put(key="b", value="1"))
    stubborn.on, stubborn.after = True, 1
    for _ in range(3):
        with pytest.raises(TakebackError):
            await at.person().undo.rewind(session="s1")
        stubborn.after = 0
    assert await at.state(act) == "undoing"
    stubborn.on = False
    await at.person().undo.rewind(session="s1")
    assert at.values == {}


async def test_an_innocent_act_is_not_blamed_for_a_strangers_save(at, monkeypatch):
    first = (await at.agent().notes.put(key="a", value="1")).act
    last = (await at.agent().notes.put(key="b", value="1")).act
    real = Runner._verify

    async def verify(self, ctx, run, draft):
        at.values["b"] = "a stranger's"
        await real(self, ctx, run, draft)

    monkeypatch.setattr(Runner, "_verify", verify)
    with pytest.raises(TakebackError) as failed:
        await at.person().undo.rewind(session="s1")
    assert failed.value.data["act"] == last
    assert await at.state(first) == "done"
    assert at.values == {"a": "1", "b": "a stranger's"}


async def test_an_inverse_that_hangs_lets_others_go_on(home):
    async with house(home, settings={"undo": {"step_seconds": 1.0}}) as at:
        hanging = (await at.agent().notes.put(key="a", value="1")).act
        other = (await at.agent().notes.put(key="b", value="1")).act
        at.notebook.waits = (anyio.Event(), anyio.Event())
        with anyio.fail_after(20), pytest.raises(TakebackError) as failed:
            await at.person().undo.run(id=hanging)
        assert failed.value.data["cause"] == "undo.step_deadline"
        await at.person().undo.run(id=other)
        assert at.values == {"a": "1"}
        await at.person().undo.run(id=hanging)
        assert at.values == {}


async def test_an_inverse_that_is_cancelled_from_inside_is_a_failure_like_any_other(at, monkeypatch):
    act = (await at.agent().notes.put(key="a", value="1")).act
    module = at.kernel.supervisor.lives["notes"].module

    async def cancelled(ctx):
        waited = anyio.get_cancelled_exc_class()
        raise waited

    monkeypatch.setattr(module, "_disturb", cancelled)
    with pytest.raises(TakebackError) as failed:
        await at.person().undo.run(id=act)
    assert failed.value.data["cause"] == "undo.step_cancelled"
    monkeypatch.undo()
    await at.person().undo.run(id=act)
    assert at.values == {}


async def test_a_confirmation_that_the_disk_had_no_room_for_is_repeated(at):
    await at.change("CREATE TRIGGER full BEFORE UPDATE ON undo_acted BEGIN SELECT RAISE(ABORT, 'full'); END")
    act = (await at.agent().notes.put(key="a", value="1")).act
    assert await at.state(act) == "pending"
    await at.change("DROP TRIGGER full")
    await at.person().undo.run(id=act)
    assert at.values == {}


async def test_a_borrowed_session_and_turn_move_nobody_elses_turn(at):
    for turn, key in (("t1", "a"), ("t2", "b"), ("t3", "c")):
        await at.agent(turn=turn).notes.put(key=key, value="1")
    await at.agent("mallory", turn="t3").notes.put(key="m", value="1")
    for turn, key in (("t3", "d"), ("t4", "e")):
        await at.agent(turn=turn).notes.put(key=key, value="1")
    await at.agent("mallory", turn="t1").notes.put(key="n", value="1")
    await at.person().undo.rewind(session="s1", turn="t4")
    assert sorted(at.values) == ["a", "b", "c", "d", "m", "n"]
    await at.person().undo.rewind(session="s1", turn="t3")
    assert sorted(at.values) == ["a", "b"]


async def test_since_takes_what_the_log_shows_since(at):
    """An act whose clock was ahead takes nothing along that the log would not list."""
    for key in "abc":
        await at.agent().notes.put(key=key, value="1")
    await at.change("UPDATE undo_acted SET at = '2001-01-01T00:00:00.000Z' WHERE seq <> 1")
    await at.change("UPDATE undo_acted SET at = '2090-01-01T00:00:00.000Z' WHERE seq = 1")
    shown = [act.summary for act in (await at.person().undo.list(since="2050-01-01")).acts]
    plan = (await at.person().undo.preview(since="2050-01-01")).plan
    assert [step.summary for step in plan.steps] == shown
