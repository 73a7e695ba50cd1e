"""An owner that can tell what has happened is asked, and what it confirms is not waited for."""

from __future__ import annotations

import sqlite3
import threading

import anyio
import pytest

from takeback import Kernel, RefusedError, TakebackError, UsageError
from takeback_core.undo import abandon, begin, confirm, rows
from takeback_core.undo.module import UndoModule
from tests.undo.house import house
from tests.undo.ledger import Answers, Book, Ledger, ledger_module

pytestmark = pytest.mark.anyio
TOUCHED = [{"resource": "ledger:a", "before": "absent", "after": "v:1"}]


@pytest.fixture
def book(tmp_path):
    return Book(tmp_path / "ledger.db")


@pytest.fixture
async def at(home, book):
    async with house(home, ledger_module(book)) as opened:
        yield opened


async def enter(at, then="", **values):
    return (await at.agent().ledger.enter(values=values, then=then)).act


async def open_act(at, entry="never", module="ledger"):
    """Begin an act that names nothing yet."""
    ctx = at.module(module)
    inverse = (f"{module}.restore", {"entry": entry} if module == "ledger" else {"items": []})
    return ctx, await begin(ctx, tool=f"{module}.enter", summary="enter", inverse=inverse)


def told(act):
    return act.state, act.summary, [(item.resource, item.before, item.after) for item in act.touched]


# ---------------------------------------------------------------- confirming


@pytest.mark.parametrize("module", ["ledger", "notes"])
async def test_only_who_can_tell_again_does_not_wait_for_what_was_touched(at, module):
    ctx, opened = await open_act(at, module=module)
    opened.confirm_with(touched=[(f"{module}:a", "absent", "v:1")], summary="one")
    go, done = threading.Event(), anyio.Event()
    at.kernel.store.submit(lambda tx: go.wait(10))

    async def work():
        await confirm(ctx, opened)
        done.set()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            await anyio.wait_all_tasks_blocked()
            waited = not done.is_set()
            go.set()
    assert waited is (module == "notes")
    assert told(await at.act(opened.id)) == ("done", "one", [(f"{module}:a", "absent", "v:1")])


@pytest.mark.parametrize("facts", [{"inverse_input": {"entry": "other"}}, {"blobs": ["a" * 64]}])
async def test_what_nobody_could_tell_again_is_waited_for(at, facts):
    ctx, opened = await open_act(at)
    opened.confirm_with(**facts)
    await confirm(ctx, opened)
    with sqlite3.connect(f"file:{at.kernel.store.path}?mode=ro", uri=True) as db:
        assert db.execute("SELECT state FROM undo_acted").fetchall() == [("done",)]
    db.close()


@pytest.mark.parametrize(
    ("touched", "kind", "code"),
    [
        ([("notes:a", "absent", "v:1")], RefusedError, "undo.foreign_resource"),
        ([("ledger:a", "absent", "v:1")] * 2, UsageError, "undo.twice_touched"),
    ],
)
async def test_what_is_not_the_owner_s_to_say_is_refused_before_it_is_answered(at, touched, kind, code):
    ctx, opened = await open_act(at)
    opened.confirm_with(touched=touched)
    with pytest.raises(kind) as refused:
        await confirm(ctx, opened)
    assert refused.value.code == code
    assert await at.state(opened.id) == "pending"
    opened.confirm_with(touched=[("ledger:a", "absent", "v:1")])
    await confirm(ctx, opened)
    assert await at.state(opened.id) == "done"


async def test_an_inverse_may_confirm_nothing_outside_what_it_is_confined_to(at):
    ctx, opened = await open_act(at)
    opened.confirm_with(touched=[("ledger:a", "absent", "v:1")])
    with pytest.raises(RefusedError) as refused:
        await confirm(ctx._replace(confined_to={"ledger:b": "absent"}), opened)
    assert refused.value.code == "scope.confined"


async def test_an_act_is_told_of_once(at):
    act = await enter(at, a="1")
    for _ in range(2):
        await at.module("ledger").undo.confirm(id=act, touched=TOUCHED)
        await at.module("ledger").undo.abandon(id=act)
    assert await at.events() == [("undo.recorded", act)]


async def test_nobody_confirms_what_another_began(at):
    _, opened = await open_act(at)
    with pytest.raises(TakebackError) as refused:
        await at.module("notes").undo.confirm(id=opened.id, touched=TOUCHED)
    assert refused.value.code == "undo.unknown_act"
    assert await at.state(opened.id) == "pending"


async def test_a_confirmation_that_the_store_could_not_take_is_repeated_with_its_facts(at, book, monkeypatch):
    def full(*_):
        raise TakebackError("store.full", "The disk is full", retryable=True)

    with monkeypatch.context() as patched:
        patched.setattr(rows, "confirm", full)
        act = await enter(at, a="1")
        assert told(await at.act(act)) == ("pending", "enter", [])
    await at.person().undo.run(id=await enter(at, b="1"))
    assert told(await at.act(act)) == ("done", "entered a", [("ledger:a", "absent", "v:1")])
    assert [kind for kind, of in await at.events() if of == act] == ["undo.recorded"]
    await at.person().undo.run(id=act)
    assert book.read() == {}


# ---------------------------------------------------------------- abandoning


async def test_an_act_that_its_owner_is_unsure_of_is_asked_for(at, book):
    act = await enter(at, then="unsure", a="1")
    assert told(await at.act(act)) == ("done", "entered a", [("ledger:a", "absent", "v:1")])
    assert await at.events() == [("undo.recorded", act)]
    await at.person().undo.run(id=act)
    assert book.read() == {}


async def test_an_act_that_its_owner_knows_nothing_of_never_happened(at):
    ctx, opened = await open_act(at)
    await abandon(ctx, opened)
    assert await at.state(opened.id) == "abandoned"


async def test_an_act_that_failed_is_abandoned(at, book):
    with pytest.raises(TakebackError, match="failed"):
        await enter(at, then="fail", a="1")
    assert [row["state"] for row in await at.rows()] == ["abandoned"]
    assert book.read() == {}


async def test_an_owner_that_can_not_tell_now_leaves_the_act_open(at, book):
    ctx, opened = await open_act(at)
    book.silent = True
    await abandon(ctx, opened)
    assert await at.state(opened.id) == "pending"


# ---------------------------------------------------------------- at the next start


async def test_an_act_whose_confirmation_was_lost_is_found_again(home, book):
    async with house(home, ledger_module(book)) as at:
        first = await enter(at, a="1")
        lost = await enter(at, then="forget", a="2", b="2")
        _, never = await open_act(at)
    async with house(home, ledger_module(book)) as at:
        assert told(await at.act(lost)) == (
            "done",
            "entered a, b",
            [("ledger:a", "v:1", "v:2"), ("ledger:b", "absent", "v:2")],
        )
        assert await at.state(never.id) == "abandoned"
        assert [of for _, of in await at.events()] == [first, lost]
        plan = (await at.person().undo.preview(id=first)).plan
        assert [(s.status, s.dependents) for s in plan.steps] == [("dependents", [lost])]
        await at.person().undo.rewind(session="s1")
        assert book.read() == {}


async def test_an_act_that_names_nothing_waits_for_its_owner(home, book):
    async with house(home, ledger_module(book)) as at:
        lost = await enter(at, then="forget", a="1")
    async with Kernel(home, settings={}, modules=[UndoModule]) as kernel:
        (act,) = (await kernel.enter("cli:person").undo.list()).acts
        assert act.state == "pending"
    async with house(home, ledger_module(book)) as at:
        assert await at.state(lost) == "done"


async def test_an_owner_that_can_not_tell_yet_keeps_no_other_waiting(home, book):
    async with house(home, ledger_module(book)) as at:
        lost = await enter(at, then="forget", a="1")
        ctx = at.module()
        other = await begin(
            ctx,
            tool="notes.put",
            summary="put",
            inverse=("notes.restore", {"items": []}),
            touched=[("notes:a", "absent", "v:1")],
        )
    book.silent = True
    async with house(home, ledger_module(book)) as at:
        assert (await at.state(lost), await at.state(other.id)) == ("pending", "abandoned")
        book.silent = False
        await at.module("undo").undo.settle_crashed()
        assert await at.state(lost) == "done"


@pytest.mark.parametrize(
    "answers",
    [
        [],
        [None, None],
        [{"touched": [], "summary": ""}],
        [{"touched": [{"resource": "notes:a", "before": "absent", "after": "v:1"}], "summary": "put"}],
        [{"touched": TOUCHED * 2, "summary": "twice"}],
    ],
)
async def test_an_answer_that_is_none_settles_nothing(home, book, monkeypatch, answers):
    async with house(home, ledger_module(book)) as at:
        lost = await enter(at, then="forget", a="1")

    async def answer(self, inputs):
        return Answers(answers=answers)

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "answer", answer)
        async with house(home, ledger_module(book)) as at:
            assert await at.state(lost) == "pending"
    async with house(home, ledger_module(book)) as at:
        assert await at.state(lost) == "done"
