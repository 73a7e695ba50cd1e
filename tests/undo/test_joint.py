"""An owner with transactions: its steps of a plan come true together, and one that fails leaves nothing."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from takeback import ConflictError, Manifest, TakebackError
from takeback_core.undo.ending import Ending
from takeback_core.undo.runner import Runner
from tests.undo.house import house
from tests.undo.ledger import Book, ledger_module

pytestmark = pytest.mark.anyio
LONG_AGO = "2000-01-01T00:00:00Z"


@pytest.fixture
def book(tmp_path):
    return Book(tmp_path / "ledger.db")


@pytest.fixture
async def at(home, book):
    async with house(home, ledger_module(book)) as opened:
        yield opened


async def enter(at, **values):
    return (await at.agent().ledger.enter(values=values)).act


async def note(at, key, value):
    return (await at.agent().notes.put(key=key, value=value)).act


async def runs(at):
    found = await at.rows("SELECT state, reason FROM undo_acted WHERE role = 'undo' ORDER BY seq")
    return [(row["state"], row["reason"]) for row in found]


async def counters(at):
    found = await at.rows("SELECT state FROM undo_acted WHERE role = 'counter' ORDER BY seq")
    return [row["state"] for row in found]


async def test_steps_on_one_entry_are_taken_back_together_and_redone(at, book):
    acts = [await enter(at, a=str(number), b=str(number)) for number in range(3)]
    assert [(await at.act(act)).summary for act in acts] == ["entered a, b"] * 3
    plan = (await at.person().undo.preview(session="s1")).plan
    assert [step.status for step in plan.steps] == ["clean"] * 3
    assert plan.conflicts == []
    opened = book.opened
    outcome = await at.person().undo.rewind(session="s1", digest=plan.digest)
    assert book.opened == opened + 2  # one to plan once more, one to run
    assert book.read() == {}
    assert await counters(at) == ["done"] * 3
    await at.person().undo.redo(id=outcome.act)
    assert book.read() == {"a": "2", "b": "2"}
    await at.person().undo.run(id=acts[2])
    assert book.read() == {"a": "1", "b": "1"}


async def test_a_plan_leaves_nothing_and_lets_the_ledger_go(at, book):
    act = await enter(at, a="1")
    await at.person().undo.preview(id=act)
    await at.person().undo.show(id=act)
    await at.person()._replace(dry_run=True).undo.run(id=act)
    assert book.opened == 3
    book.write("b", "a stranger's")  # nobody holds a lock
    assert book.read() == {"a": "1", "b": "a stranger's"}
    assert await at.state(act) == "done"


async def test_a_plan_whose_owner_breaks_lets_the_ledger_go(at, book):
    await note(at, "a", "1")
    await enter(at, a="1")
    at.notebook.objects = RuntimeError("a fault in the module")
    plan = (await at.person().undo.preview(session="s1")).plan
    assert [step.status for step in plan.steps] == ["clean", "not_undoable"]
    book.write("b", "free")


async def test_a_plan_that_is_cancelled_lets_the_ledger_go(at, book, monkeypatch):
    await enter(at, a="1")
    await note(at, "a", "1")
    await enter(at, b="1")
    entered = anyio.Event()

    async def wait(*_):
        entered.set()
        await anyio.sleep_forever()

    module = at.kernel.supervisor.lives["notes"].module
    monkeypatch.setattr(module, "_restore", wait)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: at.person().undo.preview(session="s1"))
            await entered.wait()
            with pytest.raises(Exception, match="locked"):
                book.write("c", "1")
            tasks.cancel_scope.cancel()
    book.write("c", "1")
    assert book.read() == {"a": "1", "b": "1", "c": "1"}


async def test_a_stranger_s_entry_is_a_conflict(at, book):
    act = await enter(at, a="1")
    book.write("a", "mine")
    with pytest.raises(ConflictError) as refused:
        await at.person().undo.run(id=act)
    assert refused.value.code == "undo.conflict"
    assert book.read() == {"a": "mine"}
    outcome = await at.person(present=True).undo.run(id=act, force=True)
    assert book.read() == {}
    await at.person().undo.redo(id=outcome.act)
    assert book.read() == {"a": "mine"}


async def test_later_acts_on_an_entry_are_dependents_though_they_were_begun_without_it(at, book):
    first = await enter(at, a="1")
    second = await enter(at, a="2")
    other = await enter(at, b="1")
    plan = (await at.person().undo.preview(id=first)).plan
    assert [(s.status, s.dependents) for s in plan.steps] == [("dependents", [second])]
    outcome = await at.person().undo.run(id=first, dependents=True)
    assert [step.act for step in outcome.plan.steps] == [second, first]
    assert book.read() == {"b": "1"}
    assert [await at.state(act) for act in (first, second, other)] == ["undone", "undone", "done"]


async def test_a_part_of_an_act_is_taken_back_in_the_transaction(at, book):
    act = await enter(at, a="1", b="1")
    await at.person().undo.run(id=act, only=["ledger:a"])
    assert (book.read(), await at.state(act)) == ({"b": "1"}, "done")
    await at.person().undo.run(id=act)
    assert (book.read(), await at.state(act)) == ({}, "undone")


# ---------------------------------------------------------------- failing


@pytest.mark.parametrize("how", ["before", "inside", "late"])
async def test_where_a_step_fails_nothing_has_happened(at, book, how):
    acts = [await enter(at, a="1"), await note(at, "n", "1"), await enter(at, a="2")]
    book.failures = ["", how]
    with pytest.raises(TakebackError) as failed:
        await at.person().undo.rewind(session="s1")
    assert (failed.value.code, failed.value.data["act"]) == ("undo.failed", acts[0])
    assert "as it was before" in failed.value.hint
    assert (book.read(), at.values) == ({"a": "2"}, {"n": "1"})
    assert [await at.state(act) for act in acts] == ["failed", "done", "done"]
    # The first was rolled back; the note is put back by its counter, as ever.
    assert (await counters(at))[:2] == ["abandoned", "undone"]
    await at.person().undo.rewind(session="s1")
    assert (book.read(), at.values) == ({}, {})


@pytest.mark.parametrize("how", ["prepare", "commit", "lost"])
async def test_where_the_ledger_says_no_at_the_end_nothing_has_happened(at, book, how):
    """Also where it said no and had committed: what that was is asked for, and put back."""
    acts = [await enter(at, a="1"), await note(at, "n", "1"), await enter(at, a="2")]
    book.ends = [how]
    with pytest.raises(TakebackError) as failed:
        await at.person().undo.rewind(session="s1")
    assert "as it was before" in failed.value.hint
    assert (book.read(), at.values) == ({"a": "2"}, {"n": "1"})
    assert {await at.state(act) for act in acts} <= {"done", "failed"}
    await at.person().undo.rewind(session="s1")
    assert (book.read(), at.values) == ({}, {})


async def test_a_failing_note_rolls_the_ledger_back(at, book):
    acts = [await note(at, "n", "1"), await enter(at, a="1")]
    at.notebook.break_next("late")
    with pytest.raises(TakebackError):
        await at.person().undo.rewind(session="s1")
    assert (book.read(), at.values) == ({"a": "1"}, {"n": "1"})
    assert [await at.state(act) for act in acts] == ["failed", "done"]
    assert (await counters(at))[0] == "abandoned"


async def test_an_undo_that_is_not_as_planned_is_rolled_back(at, book, monkeypatch):
    """What is verified is what the transaction holds, before anybody else can see it."""
    acts = [await enter(at, a="1"), await note(at, "n", "1")]
    real = Runner._verify

    async def verify(self, ctx, run, draft):
        at.values["n"] = "a stranger's"
        assert book.read() == {"a": "1"}
        await real(self, ctx, run, draft)

    monkeypatch.setattr(Runner, "_verify", verify)
    with pytest.raises(TakebackError) as failed:
        await at.person().undo.rewind(session="s1")
    assert failed.value.data["cause"] == "undo.not_as_planned"
    assert failed.value.data["act"] == acts[1]
    assert (book.read(), at.values) == ({"a": "1"}, {"n": "a stranger's"})


async def test_an_inverse_that_hangs_is_rolled_back_at_its_deadline(home, book):
    settings = {"undo": {"step_seconds": 1.0}}
    async with house(home, ledger_module(book), settings=settings) as at:
        acts = [await enter(at, a="1"), await enter(at, a="2")]
        book.failures, book.waits = ["wait"], (anyio.Event(), anyio.Event())
        with anyio.fail_after(20), pytest.raises(TakebackError) as failed:
            await at.person().undo.rewind(session="s1")
        assert failed.value.data["cause"] == "undo.step_deadline"
        book.write("b", "free")
        assert book.read() == {"a": "2", "b": "free"}
        assert await counters(at) == ["abandoned"]
        assert [await at.state(act) for act in acts] == ["done", "failed"]
        await at.person().undo.rewind(session="s1")
        assert book.read() == {"b": "free"}


async def test_who_leaves_does_not_stop_the_undo(at, book):
    act = await enter(at, a="1")
    entered, go = book.waits = (anyio.Event(), anyio.Event())
    book.failures = ["wait"]
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: at.person().undo.run(id=act))
            await entered.wait()
            tasks.cancel_scope.cancel()
        assert (book.read(), await at.state(act)) == ({"a": "1"}, "undoing")
        go.set()
        outcome = await at.person().undo.run(id=act)
    assert [(result.state, result.already) for result in outcome.results] == [("undone", False)]
    assert book.read() == {}


async def test_an_undo_that_is_cancelled_itself_lets_the_ledger_go(home, book, monkeypatch):
    """That ends the module; its next start settles what became of the undo."""

    async def leave(*_):
        raise asyncio.CancelledError

    async with house(home, ledger_module(book)) as at:
        acts = [await enter(at, a="1"), await note(at, "n", "1")]
        with monkeypatch.context() as patched:
            patched.setattr(Runner, "_verify", leave)
            with pytest.raises(TakebackError):
                await at.person().undo.rewind(session="s1")
        book.write("b", "free")
        assert (book.read(), at.values) == ({"a": "1", "b": "free"}, {})
    async with house(home, ledger_module(book), notebook=at.notebook) as at:
        assert {await at.state(act) for act in acts} == {"done"}
        assert (book.read(), at.values) == ({"a": "1", "b": "free"}, {"n": "1"})
        assert await runs(at) == [("abandoned", "taken back after a restart")]


async def test_what_came_true_and_could_not_be_written_down_is_finished_before_the_next(
    at, book, monkeypatch
):
    acts = [await enter(at, a="1"), await note(at, "n", "1")]

    async def full(*_):
        raise TakebackError("store.full", "The disk is full", retryable=True)

    with monkeypatch.context() as patched:
        patched.setattr(Ending, "end", full)
        with pytest.raises(TakebackError, match="full"):
            await at.person().undo.rewind(session="s1")
    assert (book.read(), at.values) == ({}, {})
    assert {await at.state(act) for act in acts} == {"undoing"}
    await at.person().undo.rewind(session="s1")
    assert {await at.state(act) for act in acts} == {"undone"}
    assert await runs(at) == [("done", "finished later")]


async def test_where_nobody_can_tell_what_became_of_it_it_is_asked_again(at, book):
    """Nothing is put back and nothing called done before it is known."""
    acts = [await note(at, "n", "1"), await enter(at, a="1"), await note(at, "n", "2")]
    book.ends, book.silent = ["lost"], True
    for _ in range(2):
        with pytest.raises(TakebackError):
            await at.person().undo.rewind(session="s1")
        assert {await at.state(act) for act in acts} == {"undoing"}
        assert (book.read(), at.values) == ({}, {})
    book.silent = False
    await at.person().undo.rewind(session="s1")
    assert {await at.state(act) for act in acts} == {"undone"}
    assert (book.read(), at.values) == ({}, {})
    assert await runs(at) == [("done", "finished later")]


@pytest.mark.parametrize("how", ["prepare", "commit", "lost", "before"])
async def test_what_can_not_be_put_back_together_is_told(at, book, how):
    """The ledger has committed and can't take it back again: its acts are unknown, and nothing else is."""
    first = await note(at, "n", "1")
    act = await enter(at, a="1")
    book.ends = ["lost", how]
    if how == "before":
        book.ends, book.failures = ["lost"], ["", "before"]
    with pytest.raises(TakebackError) as failed:
        await at.person().undo.rewind(session="s1")
    assert at.values == {"n": "1"}
    if how == "lost":  # and that was committed, after all
        assert (book.read(), await at.state(act)) == ({"a": "1"}, "done")
        return
    assert "as it was before" not in failed.value.hint
    assert book.read() == {}
    assert await at.state(act) == "unknown"
    assert await at.state(first) in ("done", "failed")


async def test_what_is_cut_off_while_it_is_put_back_is_rolled_back_and_put_back_later(home, book):
    """Nobody knows what a step that was cut off has left in the transaction, so none of it is committed."""
    async with house(home, ledger_module(book), settings={"undo": {"step_seconds": 0.5}}) as at:
        acts = [await enter(at, a="1"), await enter(at, b="1"), await note(at, "n", "1")]
        book.ends, book.failures = ["lost"], ["", "", "wait"]
        book.waits = (anyio.Event(), anyio.Event())
        with anyio.fail_after(20), pytest.raises(TakebackError):
            await at.person().undo.rewind(session="s1")
        assert (book.read(), at.values) == ({}, {"n": "1"})
        assert {await at.state(act) for act in acts} == {"undoing"}
        assert await counters(at) == ["undone", "done", "done", "abandoned", "abandoned", "done"]
        await at.module("undo").undo.settle_crashed()
        assert (book.read(), at.values) == ({"a": "1", "b": "1"}, {"n": "1"})
        assert {await at.state(act) for act in acts} == {"done"}
        assert await runs(at) == [("abandoned", "taken back later")]


async def test_an_inverse_may_not_plan_another_undo_while_the_ledger_is_open(at, book):
    """It would wait for what is held by the very undo that it is a step of."""
    await note(at, "n", "1")
    await enter(at, a="1")
    at.notebook.asks = ("undo.preview", {"session": "s1"})
    with pytest.raises(TakebackError) as failed:
        await at.person().undo.rewind(session="s1")
    assert failed.value.data["cause"] == "undo.nested"
    assert (book.read(), at.values) == ({"a": "1"}, {"n": "1"})


# ---------------------------------------------------------------- two owners of the kind


@pytest.fixture
async def two(home, tmp_path):
    """A house with two ledgers, which can't commit as one."""
    books = Book(tmp_path / "ledger.db"), Book(tmp_path / "other.db")

    other = ledger_module(books[1])
    other.manifest = Manifest(1, "other", "Another ledger.", needs=("undo",), calls=("undo.*",))
    async with house(home, ledger_module(books[0]), other) as opened:
        yield opened, *books


@pytest.mark.parametrize("how", ["prepare", "commit", "lost"])
async def test_where_the_second_says_no_the_first_is_put_back(two, how):
    at, book, other = two
    acts = [
        (await at.agent().other.enter(values={"a": "1"})).act,
        await enter(at, a="1"),
        (await at.agent().other.enter(values={"a": "2"})).act,
        await enter(at, a="2"),
    ]
    other.ends = [how]
    with pytest.raises(TakebackError) as failed:
        await at.person().undo.rewind(session="s1")
    assert "as it was before" in failed.value.hint
    assert (book.read(), other.read()) == ({"a": "2"}, {"a": "2"})
    assert {await at.state(act) for act in acts} <= {"done", "failed"}
    assert set(await counters(at)) == (
        {"abandoned"}
        if how == "prepare"
        else {"abandoned", "undone", "done"} - ({"abandoned"} if how == "lost" else set())
    )
    await at.person().undo.rewind(session="s1")
    assert (book.read(), other.read()) == ({}, {})


async def test_both_are_taken_back_together(two):
    at, book, other = two
    await at.agent().other.enter(values={"a": "1"})
    await enter(at, a="1")
    outcome = await at.person().undo.rewind(session="s1")
    assert (book.read(), other.read()) == ({}, {})
    await at.person().undo.redo(id=outcome.act)
    assert (book.read(), other.read()) == ({"a": "1"}, {"a": "1"})
