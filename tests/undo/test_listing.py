"""The list: newest first, filtered, and page by page while rows come in."""

import pytest

from takeback import UsageError

pytestmark = pytest.mark.anyio


async def put(who, key="a", value="1"):
    return (await who.notes.put(key=key, value=value)).act


async def listed(at, **filters):
    return [act.id for act in (await at.person().undo.list(**filters)).acts]


async def test_newest_first_in_the_order_of_commits(at):
    acts = [await put(at.agent(), str(n)) for n in range(5)]
    await at.change("UPDATE undo_acted SET at = '2020-01-01T00:00:00.000Z' WHERE id = ?", acts[3])
    assert await listed(at) == acts[::-1]


async def test_an_empty_log(at):
    page = await at.person().undo.list()
    assert (page.acts, page.next) == ([], None)


@pytest.mark.parametrize(("count", "pages"), [(4, [2, 2]), (5, [2, 2, 1]), (2, [2]), (1, [1])])
async def test_pages(at, count, pages):
    acts = [await put(at.agent(), str(n)) for n in range(count)]
    found, sizes, cursor = [], [], None
    while True:
        page = await at.person().undo.list(limit=2, cursor=cursor)
        found += [act.id for act in page.acts]
        sizes.append(len(page.acts))
        cursor = page.next
        if cursor is None:
            break
    assert sizes == pages
    assert found == acts[::-1]


async def test_a_cursor_holds_while_rows_come_in_and_change(at):
    acts = [await put(at.agent(), str(n)) for n in range(6)]
    first = await at.person().undo.list(limit=2)
    await put(at.agent(), "new")
    await at.person().undo.run(id=acts[3])
    second = await at.person().undo.list(limit=2, cursor=first.next)
    await put(at.agent(), "newer")
    third = await at.person().undo.list(limit=2, cursor=second.next)
    assert [act.id for page in (first, second, third) for act in page.acts] == acts[::-1]
    assert third.next is None


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1.5", "٣", "9" * 19, "1; DROP TABLE undo_acted"])
async def test_a_cursor_that_is_none(at, cursor):
    with pytest.raises(UsageError) as refused:
        await at.person().undo.list(cursor=cursor)
    assert refused.value.code == "undo.cursor"


@pytest.mark.parametrize(
    "given",
    [
        {"limit": 0},
        {"limit": 501},
        {"limit": "many"},
        {"state": "lost"},
        {"resource": "no scheme"},
        {"resource": ""},
        {"more": 1},
        {"agent": 7},
        {"id_prefix": ""},
        {"id_prefix": "%"},
        {"id_prefix": "0190A"},
    ],
)
async def test_filters_that_make_no_sense(at, given):
    with pytest.raises(UsageError) as refused:
        await at.person().call("undo.list", given)
    assert refused.value.code == "args.invalid"


async def test_by_agent_session_and_turn(at):
    one = await put(at.agent("juno", session="s1", turn="t1"))
    two = await put(at.agent("juno", session="s2", turn="t1"))
    three = await put(at.agent("ada", session="s3", turn="t2"))
    four = await put(at.person())
    assert await listed(at, agent="juno") == [two, one]
    assert await listed(at, session="s1") == [one]
    assert await listed(at, turn="t1") == [two, one]
    assert await listed(at, agent="juno", session="s2", turn="t1") == [two]
    assert await listed(at, agent="juno", session="s3") == []
    assert await listed(at) == [four, three, two, one]


async def test_since(at):
    acts = [await put(at.agent(), key) for key in "abc"]
    for act, when in zip(acts, ("09:00:00", "10:00:00", "11:00:00"), strict=True):
        await at.change("UPDATE undo_acted SET at = ? WHERE id = ?", f"2026-11-30T{when}.000Z", act)
    assert await listed(at, since="2026-11-30T10:00:00Z") == acts[:0:-1]
    assert await listed(at, since="2026-11-30T11:00:00+01:00") == acts[:0:-1]
    assert await listed(at, since="2026-11-30 10:00:00.001") == acts[:1:-1]
    assert await listed(at, since="2026-12-01") == []


async def test_by_the_beginning_of_an_id(at):
    acts = [await put(at.agent(), key) for key in "abc"]
    shared = next(acts[0][:n] for n in range(36, 0, -1) if all(act.startswith(acts[0][:n]) for act in acts))
    assert await listed(at, id_prefix=shared) == acts[::-1]
    assert await listed(at, id_prefix=acts[1]) == [acts[1]]
    assert await listed(at, id_prefix=acts[1], agent="nobody") == []
    assert await listed(at, id_prefix="ffff") == []


async def test_by_state(at):
    acts = [await put(at.agent(), key) for key in "abc"]
    await at.person().undo.run(id=acts[0])
    at.notebook.break_next()
    with pytest.raises(Exception, match="stuck"):
        await at.person().undo.run(id=acts[1])
    assert await listed(at, state="undone") == [acts[0]]
    assert await listed(at, state="failed") == [acts[1]]
    assert acts[2] in await listed(at, state="done")
    assert await listed(at, state="unknown") == []


async def test_a_child_is_found_by_its_state(at):
    items = [{"key": key, "value": "1"} for key in "ab"]
    parent = (await at.agent().notes.batch(items=items, own="around")).act
    child = (await at.person().undo.show(id=parent)).children[0]
    await at.change("UPDATE undo_acted SET state = 'unknown' WHERE id = ?", child.id)
    assert await listed(at, state="unknown") == [child.id]
    assert await listed(at) == [parent]


async def test_by_resource_and_what_lies_beneath(at):
    folder = await put(at.agent(), "folder")
    inner = await put(at.agent(), "folder/a")
    deep = await put(at.agent(), "folder/b/c")
    await put(at.agent(), "folder-beside")
    await put(at.agent(), "folder0")
    await put(at.agent(), "other")
    assert await listed(at, resource="notes:folder") == [deep, inner, folder]
    assert await listed(at, resource="notes:folder/") == [deep, inner]
    assert await listed(at, resource="notes:folder/b") == [deep]
    assert await listed(at, resource="notes:fold") == []
    assert await listed(at, resource="notes:folder/%") == []
    assert await listed(at, resource="other:folder") == []


async def test_a_resource_finds_each_act_once_and_children_too(at):
    moved = await put(at.agent(), "f/a")
    renamed = (await at.agent().notes.rename(key="f/a", to="f/b")).act
    items = [{"key": "f/c", "value": "1"}]
    parent = (await at.agent().notes.batch(items=items, own="around", key="f/p")).act
    found = await listed(at, resource="notes:f")
    assert len(found) == len(set(found)) == 4
    assert {moved, renamed, parent} < set(found)


async def test_resource_filters_page_as_well(at):
    acts = [await put(at.agent(), f"f/{n}") for n in range(3)]
    page = await at.person().undo.list(resource="notes:f", limit=2)
    rest = await at.person().undo.list(resource="notes:f", limit=2, cursor=page.next)
    assert [act.id for act in (*page.acts, *rest.acts)] == acts[::-1]


async def test_undos_are_listed_and_what_they_recorded_is_not(at):
    act = await put(at.agent())
    undo = (await at.person("phone", door="web").undo.run(id=act)).act
    page = await at.person().undo.list()
    assert [(a.id, a.role, a.actor) for a in page.acts] == [
        (undo, "undo", "web:person:phone"),
        (act, "act", "mcp:agent:juno"),
    ]
    assert page.acts[0].input == {}
    assert await listed(at, resource="notes:a") == [act]
    assert set(await listed(at, state="done")) == {undo}


async def test_an_undo_within_a_call_is_listed_although_the_call_records_an_act(at):
    """It is no child of the act: undoing that act does not take the undo back."""
    mine = (await at.module().notes.put(key="a", value="1")).act
    batch = {"items": [], "own": "after", "undoes": mine}
    made = (await at.module().notes.batch(batch)).act
    assert at.values == {"batch": "ran"}
    listed_ = (await at.person().undo.list()).acts
    assert [(a.role, a.parent) for a in listed_] == [("act", None), ("undo", None), ("act", None)]
    await at.person().undo.run(id=made)
    assert at.values == {}


async def test_a_final_act_is_listed_with_its_reason(at):
    made = await at.module().undo.record(
        tool="notes.put", summary="sent", why=["said:7", "rule:x"], final_reason="it left the machine"
    )
    (act,) = (await at.person().undo.list()).acts
    assert (act.id, act.state, act.undoable, act.reason) == (made.id, "final", False, "it left the machine")
    assert act.why == ["said:7", "rule:x"]
    shown = await at.person().undo.show(id=made.id)
    assert [(s.status, s.reason) for s in shown.plan.steps] == [("not_undoable", "it left the machine")]


async def test_show_has_the_plan_of_an_undo_or_of_a_redo(at):
    act = await put(at.agent())
    shown = await at.person().undo.show(id=act)
    assert [(e.action, e.version) for e in shown.plan.steps[0].effects] == [("delete", "absent")]
    await at.person().undo.run(id=act)
    shown = await at.person().undo.show(id=act)
    assert [(e.action, e.version) for e in shown.plan.steps[0].effects] == [("restore", "v:1")]
    assert shown.plan == (await at.person().undo.preview(id=act, redo=True)).plan


async def test_times_are_utc_with_milliseconds(at):
    await put(at.agent())
    (act,) = (await at.person().undo.list()).acts
    assert len(act.at) == len("2026-11-30T09:00:00.000Z")
    assert act.at.endswith("Z")
