"""However many tap, the inverse runs once and everybody hears the same truth."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from takeback import NotFoundError, RefusedError, TakebackError

pytestmark = pytest.mark.anyio


async def put(at, key="a", value="1"):
    return (await at.agent().notes.put(key=key, value=value)).act


async def all_at_once(calls):
    """Make calls together; answers outcomes and errors in their order."""
    answers: list[Any] = [None] * len(calls)

    async def make(index, call):
        try:
            answers[index] = await call()
        except TakebackError as error:
            answers[index] = error

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for index, call in enumerate(calls):
                tasks.start_soon(make, index, call)
    return answers


def told(outcome):
    return [(r.id, r.state, r.already) for r in outcome.results]


async def test_200_taps_of_the_person_on_many_devices_run_it_once(at):
    act = await put(at)
    people = [
        at.person(f"device{n % 7}" if n % 3 else None, door=("cli", "web", "tray")[n % 3]) for n in range(200)
    ]
    outcomes = await all_at_once([lambda who=who: who.undo.run(id=act) for who in people])
    assert at.notebook.ran == [["a"]]
    assert all(outcome == outcomes[0] for outcome in outcomes)
    assert told(outcomes[0]) == [(act, "undone", False)]
    assert (await at.act(act)).tries == 1
    assert [kind for kind, _ in await at.events() if kind == "undo.done"] == ["undo.done"]
    assert told(await at.person().undo.run(id=act)) == [(act, "undone", True)]


async def test_200_taps_of_the_person_and_the_agent_itself(at):
    act = await put(at)
    whos = [
        (at.person("phone", door="web"), at.agent(), at.agent(door="hook"), at.person())[n % 4]
        for n in range(200)
    ]
    outcomes = await all_at_once([lambda who=who: who.undo.run(id=act) for who in whos])
    assert at.notebook.ran == [["a"]]
    assert {(r.id, r.state) for outcome in outcomes for r in outcome.results} == {(act, "undone")}
    joined = [outcome for outcome in outcomes if not outcome.results[0].already]
    assert len(joined) == 100
    assert all(outcome == joined[0] for outcome in joined)
    assert all(outcome.act is None for outcome in outcomes if outcome.results[0].already)


async def test_taps_with_and_without_a_digest_run_it_once(at):
    act = await put(at)
    me = at.person()
    digest = (await me.undo.preview(id=act)).plan.digest
    calls = [
        (lambda: me.undo.run(id=act, digest=digest)) if n % 2 else (lambda: me.undo.run(id=act))
        for n in range(40)
    ]
    outcomes = await all_at_once(calls)
    assert at.notebook.ran == [["a"]]
    assert all(outcome.results[0].state == "undone" for outcome in outcomes)


async def test_an_undo_and_a_rewind_at_once_run_each_inverse_once(at):
    acts = [await put(at, key) for key in "abc"]
    me = at.person()
    calls = [
        *(lambda act=act: me.undo.run(id=act) for act in acts),
        *(lambda: me.undo.rewind(session="s1") for _ in range(10)),
        *(lambda act=act: at.agent().undo.run(id=act) for act in acts),
    ]
    answers = await all_at_once(calls)
    assert not [answer for answer in answers if isinstance(answer, TakebackError)]
    assert sorted(at.notebook.ran) == [["a"], ["b"], ["c"]]
    assert at.values == {}
    undone = [r.id for a in answers for r in a.results if not r.already]
    assert set(undone) == set(acts)


async def test_undo_and_redo_at_once_end_in_one_of_the_two(at):
    act = await put(at)
    me = at.person()
    calls = [(lambda: me.undo.redo(id=act)) if n % 2 else (lambda: me.undo.run(id=act)) for n in range(20)]
    answers = await all_at_once(calls)
    assert not [answer for answer in answers if isinstance(answer, TakebackError)]
    state = await at.state(act)
    assert at.values == ({"a": "1"} if state == "done" else {})


async def test_taps_on_an_inverse_that_fails_try_it_once(at):
    act = await put(at)
    at.notebook.break_next()
    errors = await all_at_once([lambda: at.person().undo.run(id=act)] * 50)
    assert {type(error) for error in errors} == {TakebackError}
    assert {error.code for error in errors} == {"undo.failed"}
    assert all(error.data == {"act": act, "cause": "notes.broken"} for error in errors)
    assert len({id(error) for error in errors}) == 50
    assert (await at.act(act)).tries == 1
    assert [kind for kind, _ in await at.events() if kind == "undo.failed"] == ["undo.failed"]


async def test_a_stranger_who_taps_at_the_same_time_hears_of_nothing(at):
    act = await put(at)
    calls = [
        (lambda: at.person().undo.run(id=act)) if n % 2 else (lambda: at.agent("ada").undo.run(id=act))
        for n in range(20)
    ]
    answers = await all_at_once(calls)
    assert {answer.code for answer in answers[::2]} == {"undo.unknown_act"}
    assert {answer.results[0].state for answer in answers[1::2]} == {"undone"}


async def test_an_agent_with_a_narrower_scope_does_not_join_one_with_a_wider(at):
    act = await put(at)
    answers = await all_at_once(
        [
            lambda: at.agent(scope=["elsewhere"]).undo.run(id=act),
            lambda: at.agent().undo.run(id=act),
        ]
    )
    assert isinstance(answers[0], RefusedError)
    assert answers[0].code == "scope.outside"
    assert told(answers[1]) == [(act, "undone", False)]


async def test_a_caller_who_leaves_does_not_leave_it_half_done(at):
    acts = [await put(at, key) for key in "ab"]
    entered, go = anyio.Event(), anyio.Event()
    at.notebook.waits = (entered, go)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: at.person().undo.rewind(session="s1"))
            await entered.wait()
            tasks.cancel_scope.cancel()
        assert at.values == {"a": "1", "b": "1"}
        go.set()
        for act in acts:
            # Runs stand in a queue, so this one answers after the one that was left alone.
            assert told(await at.person().undo.run(id=act)) == [(act, "undone", True)]
    assert at.values == {}


async def joined(at, count):
    """Wait until so many taps wait for the one run; a tap reads the log before it joins."""
    (tap,) = at.kernel.supervisor.lives["undo"].module._taps._under_way.values()
    while tap.done.statistics().tasks_waiting < count:
        await anyio.lowlevel.checkpoint()


async def test_who_joins_late_hears_the_same(at):
    act = await put(at)
    entered, go = anyio.Event(), anyio.Event()
    at.notebook.waits = (entered, go)
    outcomes = []

    async def tap(device):
        outcomes.append(await at.person(device).undo.run(id=act))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tap, "one")
            await entered.wait()
            tasks.start_soon(tap, "two")
            await joined(at, 2)
            go.set()
    assert outcomes[0] == outcomes[1]
    assert told(outcomes[0]) == [(act, "undone", False)]


@pytest.mark.parametrize("verb", ["run", "redo", "rewind"])
async def test_an_inverse_can_t_start_another_undo(at, verb):
    act = await put(at)
    at.notebook.asks = (f"undo.{verb}", {"session": "s1"} if verb == "rewind" else {"id": act})
    with anyio.fail_after(10):
        with pytest.raises(TakebackError) as failed:
            await at.person().undo.run(id=act)
    assert failed.value.data["cause"] == ("undo.nested" if verb == "rewind" else "undo.unknown_act")
    assert at.values == {"a": "1"}


async def test_a_rehearsal_does_not_join_a_run(at):
    act = await put(at)
    me = at.person()
    answers = await all_at_once(
        [(lambda n=n: me._replace(dry_run=bool(n % 2)).undo.run(id=act)) for n in range(10)]
    )
    assert at.notebook.ran == [["a"]]
    assert all(answer.results == [] for answer in answers[1::2])
    assert all(told(answer) == [(act, "undone", False)] for answer in answers[::2])


async def test_an_unknown_act_is_unknown_to_all(at):
    answers = await all_at_once([lambda: at.person().undo.run(id="nothing")] * 20)
    assert {type(answer) for answer in answers} == {NotFoundError}
