"""The events of the log: after commit, in order, and none missed by one who reads on."""

import pytest

from takeback import TakebackError
from tests.undo.house import house

pytestmark = pytest.mark.anyio


async def put(at, key="a", value="1"):
    return (await at.agent().notes.put(key=key, value=value)).act


async def test_what_each_event_says(at):
    act = await put(at)
    await at.person().undo.run(id=act)
    await at.person().undo.redo(id=act)
    stored = [e for e in await at.kernel.events.after(0, limit=100) if e.kind.startswith("undo.")]
    assert [(e.kind, e.data) for e in stored] == [
        ("undo.recorded", {"id": act, "actor_kind": "agent", "tool": "notes.put"}),
        ("undo.done", {"id": act}),
        ("undo.done", {"id": act}),
    ]


async def test_events_come_after_the_commit(at):
    """A listener that looks finds what it was told of."""
    seen = []

    async def look(seq, event):
        row = (await at.rows(f"SELECT state FROM undo_acted WHERE id = '{event.id}'"))[0]
        seen.append((event.kind, row["state"]))

    for kind in ("undo.recorded", "undo.done", "undo.failed"):
        at.kernel.events.on(kind, look)
    act = await put(at)
    at.notebook.break_next()
    with pytest.raises(TakebackError):
        await at.person().undo.run(id=act)
    await at.kernel.events.close()
    assert seen == [("undo.recorded", "done"), ("undo.failed", "failed")]


async def test_a_begun_act_is_told_of_when_it_is_confirmed(at):
    given = {
        "tool": "notes.put",
        "summary": "put",
        "inverse_tool": "notes.restore",
        "inverse_input": {"items": []},
    }
    begun = await at.module().undo.begin(given)
    assert await at.events() == []
    await at.module().undo.confirm(id=begun.id)
    await at.module().undo.confirm(id=begun.id)
    assert await at.events() == [("undo.recorded", begun.id)]


async def test_an_abandoned_act_is_not_told_of(at):
    touched = [{"resource": "notes:a", "before": "absent", "after": "v:1"}]
    begun = await at.module().undo.begin(
        tool="notes.put", summary="put", final_reason="no way back", touched=touched
    )
    await at.module().undo.abandon(id=begun.id)
    assert await at.events() == []


async def test_counters_are_not_told_of(at):
    act = await put(at)
    await at.person().undo.run(id=act)
    assert [e for e in await at.events("undo.recorded") if e[1] != act] == []


async def test_a_refused_undo_is_not_told_of(at):
    act = await put(at)
    at.values["a"] = "by hand"
    with pytest.raises(TakebackError):
        await at.person().undo.run(id=act)
    assert await at.events() == [("undo.recorded", act)]


async def test_a_rewind_tells_of_each_act(at):
    acts = [await put(at, key) for key in "abc"]
    await at.person().undo.rewind(session="s1")
    assert sorted(await at.events("undo.done")) == sorted(("undo.done", act) for act in acts)


async def test_a_reader_that_comes_back_misses_none(home):
    async with house(home) as at:
        first = await put(at, "a")
        seen = [e async for e in stored_after(at, 0)]
        second = await put(at, "b")
        await at.person().undo.run(id=first)
    async with house(home) as at:
        missed = [e async for e in stored_after(at, seen[-1].seq)]
        assert [(e.kind, e.data["id"]) for e in missed] == [
            ("undo.recorded", second),
            ("undo.done", first),
        ]
        assert [e.seq for e in (*seen, *missed)] == sorted({e.seq for e in (*seen, *missed)})


async def stored_after(at, seq):
    while page := await at.kernel.events.after(seq, limit=1):
        for event in page:
            seq = event.seq
            if event.kind.startswith("undo."):
                yield event


async def test_a_failing_listener_changes_nothing(at, caplog):
    def fail(seq, event):
        raise RuntimeError("a listener's own fault")

    at.kernel.events.on("undo.done", fail)
    act = await put(at)
    assert (await at.person().undo.run(id=act)).results[0].state == "undone"
    assert await at.state(act) == "undone"
