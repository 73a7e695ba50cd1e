"""Rewinds: which acts they select, in which order, and that they do it all or not at all."""

import pytest

from takeback import ConflictError, RefusedError, UsageError

pytestmark = pytest.mark.anyio


async def put(who, key, value="1"):
    return (await who.notes.put(key=key, value=value)).act


def undone(outcome):
    return [result.id for result in outcome.results]


async def test_by_session(at):
    mine = [await put(at.agent(session="s1"), key) for key in "ab"]
    await put(at.agent(session="s2"), "c")
    await put(at.agent(session=None), "d")
    outcome = await at.person().undo.rewind(session="s1")
    assert undone(outcome) == mine[::-1]
    assert at.values == {"c": "1", "d": "1"}


async def test_by_turn_takes_all_after_it_along(at):
    acts = {}
    for turn in ("t1", "t2", "t3"):
        for key in "ab":
            acts[turn, key] = await put(at.agent(turn=turn), f"{turn}{key}")
    await put(at.agent(session="s2", turn="t2"), "other")
    outcome = await at.person().undo.rewind(session="s1", turn="t2")
    assert undone(outcome) == [acts[t, k] for t in ("t3", "t2") for k in "ba"]
    assert sorted(at.values) == ["other", "t1a", "t1b"]


async def test_a_turn_takes_later_acts_without_a_turn_along(at):
    await put(at.agent(turn="t1"), "a")
    await put(at.agent(turn="t2"), "b")
    await put(at.agent(turn=None), "c")
    await at.person().undo.rewind(session="s1", turn="t2")
    assert at.values == {"a": "1"}


async def test_a_turn_that_came_twice_counts_from_its_first_act(at):
    await put(at.agent(turn="t0"), "z")
    for turn, key in (("t1", "a"), ("t2", "b"), ("t1", "c")):
        await put(at.agent(turn=turn), key)
    await at.person().undo.rewind(session="s1", turn="t1")
    assert at.values == {"z": "1"}


@pytest.mark.parametrize(
    "given", [{"session": "nobody's"}, {"session": "s1", "turn": "t9"}, {"agent": "nobody"}]
)
async def test_what_selects_nothing_changes_nothing(at, given):
    await put(at.agent(turn="t1"), "a")
    outcome = await at.person().undo.rewind(given)
    assert (outcome.results, outcome.plan.steps, outcome.act) == ([], [], None)
    assert at.values == {"a": "1"}


async def test_since_a_time(at):
    acts = [await put(at.agent(session=None), key) for key in "abc"]
    for act, when in zip(acts, ("09:00:00", "10:00:00", "11:00:00"), strict=True):
        await at.change("UPDATE undo_acted SET at = ? WHERE id = ?", f"2026-11-30T{when}.000Z", act)
    outcome = await at.person().undo.rewind(since="2026-11-30T10:00:00+00:00")
    assert undone(outcome) == acts[:0:-1]
    await at.person().undo.run(id=outcome.act)
    outcome = await at.person().undo.rewind(since="2026-11-30T11:30:00+01:00")
    assert undone(outcome) == acts[:1:-1]


@pytest.mark.parametrize(
    "since", ["yesterday", "", "2026-13-01", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"]
)
async def test_a_time_that_is_none(at, since):
    for verb in ("rewind", "list"):
        with pytest.raises(UsageError) as refused:
            await at.person().call(f"undo.{verb}", {"since": since})
        assert refused.value.code == "undo.time"


async def test_by_agent(at):
    mine = [
        await put(at.agent(session=s, door=d), k) for s, d, k in (("s1", "mcp", "a"), ("s2", "hook", "b"))
    ]
    await put(at.agent("ada"), "c")
    await put(at.person(), "d")
    outcome = await at.person().undo.rewind(agent="juno")
    assert undone(outcome) == mine[::-1]
    assert sorted(at.values) == ["c", "d"]


async def test_filters_together(at):
    await put(at.agent("ada", session="s1"), "a")
    act = await put(at.agent("juno", session="s1"), "b")
    await put(at.agent("juno", session="s2"), "c")
    assert undone(await at.person().undo.rewind(session="s1", agent="juno")) == [act]


@pytest.mark.parametrize(
    "given", [{}, {"id": "x", "session": "s1"}, {"turn": "t1"}, {"turn": "t1", "agent": "juno"}]
)
async def test_a_selection_that_says_nothing_or_too_much(at, given):
    for verb in ("rewind", "preview"):
        with pytest.raises(UsageError) as refused:
            await at.person().call(f"undo.{verb}", given)
        assert refused.value.code == "undo.selection"


@pytest.mark.parametrize("more", [{"redo": True}, {"dependents": True}])
async def test_only_one_act_has_a_redo_or_dependents(at, more):
    with pytest.raises(UsageError) as refused:
        await at.person().call("undo.preview", {"session": "s1", **more})
    assert refused.value.code == "undo.selection"


async def test_a_rewind_of_one_act_by_its_id(at):
    acts = [await put(at.agent(), key) for key in "ab"]
    assert undone(await at.person().undo.rewind(id=acts[0])) == [acts[0]]


async def test_strictly_newest_first_whatever_clocks_and_ids_say(at):
    acts = [await put(at.agent(), key) for key in "abcde"]
    for n, act in enumerate(acts):
        await at.change("UPDATE undo_acted SET at = ? WHERE id = ?", f"2026-11-30T09:00:0{9 - n}.000Z", act)
    outcome = await at.person().undo.rewind(session="s1")
    assert at.notebook.ran == [["e"], ["d"], ["c"], ["b"], ["a"]]
    assert [step.act for step in outcome.plan.steps] == acts[::-1]


async def test_many_acts_on_one_note(at):
    for n in range(100):
        await put(at.agent(), "a", str(n))
    outcome = await at.person().undo.rewind(session="s1")
    assert len(outcome.results) == 100
    assert at.values == {}
    assert at.notebook.ran == [["a"]] * 100


async def test_renames_and_deletions_in_a_row(at):
    at.values["a"] = "0"
    juno = at.agent()
    await put(juno, "a")
    await juno.notes.rename(key="a", to="b")
    await put(juno, "a", "new")
    await juno.notes.delete(key="b")
    await juno.notes.rename(key="a", to="b")
    plan = (await at.person().undo.preview(session="s1")).plan
    assert plan.counts == {"clean": 5}
    await at.person().undo.rewind(session="s1", digest=plan.digest)
    assert at.values == {"a": "0"}


async def test_acts_undone_before_are_left_alone(at):
    acts = [await put(at.agent(), key) for key in "abc"]
    await at.person().undo.run(id=acts[1])
    outcome = await at.person().undo.rewind(session="s1")
    assert undone(outcome) == [acts[2], acts[0]]


async def test_undos_are_no_part_of_a_rewind(at):
    acts = [await put(at.agent(), key) for key in "ab"]
    await at.agent().undo.run(id=acts[0])
    outcome = await at.person().undo.rewind(session="s1")
    assert undone(outcome) == [acts[1]]
    assert at.values == {}


async def test_the_preview_changes_nothing_and_is_what_is_done(at):
    for key in "abc":
        await put(at.agent(), key)
    rows = await at.rows()
    plan = (await at.person().undo.preview(session="s1")).plan
    assert await at.rows() == rows
    assert at.notebook.ran == []
    assert (await at.person().undo.preview(session="s1")).plan == plan
    rehearsed = await at.person()._replace(dry_run=True).undo.rewind(session="s1")
    assert (rehearsed.plan, rehearsed.results) == (plan, [])
    assert (await at.person().undo.rewind(session="s1", digest=plan.digest)).plan == plan


@pytest.mark.parametrize("change", ["a new act", "a foreign edit", "an undo", "a redo", "another act"])
async def test_a_plan_that_changed_since_its_preview_is_refused(at, change):
    me = at.person()
    first = await put(at.agent(), "a")
    second = await put(at.agent(), "b")
    if change == "a redo":
        await me.undo.run(id=second)
    digest = (await me.undo.preview(session="s1")).plan.digest
    match change:
        case "a new act":
            await put(at.agent(), "c")
        case "a foreign edit":
            at.values["a"] = "by hand"
        case "an undo":
            await me.undo.run(id=first)
        case "a redo":
            await me.undo.redo(id=second)
        case "another act":
            await put(at.agent("ada"), "a", "ada's")
    values = dict(at.values)
    with pytest.raises(ConflictError) as refused:
        await me.undo.rewind(session="s1", digest=digest)
    assert refused.value.code == "undo.plan_changed"
    assert refused.value.data["plan"]["digest"] == (await me.undo.preview(session="s1")).plan.digest
    assert at.values == values


async def test_a_digest_is_that_of_one_selection(at):
    first = await put(at.agent(), "a")
    await put(at.agent(), "b")
    digest = (await at.person().undo.preview(session="s1")).plan.digest
    with pytest.raises(ConflictError) as refused:
        await at.person().undo.run(id=first, digest=digest)
    assert refused.value.code == "undo.plan_changed"


async def test_a_plan_with_a_conflict_does_nothing_at_all(at):
    for key in "abc":
        await put(at.agent(), key)
    at.values["b"] = "by hand"
    with pytest.raises(ConflictError) as refused:
        await at.person().undo.rewind(session="s1")
    assert refused.value.code == "undo.conflict"
    assert refused.value.data["plan"]["counts"] == {"clean": 2, "conflict": 1}
    assert at.values == {"a": "1", "b": "by hand", "c": "1"}
    assert at.notebook.ran == []
    assert [row["state"] for row in await at.rows()] == ["done"] * 3


async def test_skipping_a_conflict_skips_every_older_step_on_that_note(at):
    at.notebook.inverse = "notes.restore_whole"
    at.values["a"] = "0"
    old = await put(at.agent(), "a", "1")
    beside = await put(at.agent(), "b", "1")
    moved = (await at.agent().notes.rename(key="a", to="c")).act
    at.values["c"] = "by hand"
    outcome = await at.person().undo.rewind(session="s1", skip_conflicts=True)
    assert {s.act: s.status for s in outcome.plan.steps} == {
        moved: "conflict",
        beside: "clean",
        old: "conflict",
    }
    assert undone(outcome) == [beside]
    assert at.values == {"c": "by hand"}
    assert [await at.state(act) for act in (old, beside, moved)] == ["done", "undone", "done"]


async def test_an_older_step_that_looks_clean_is_skipped_with_the_newer_one(at):
    """The hand put back what the older act had left: undoing the older act would tear it out again."""
    old = await put(at.agent(), "a", "1")
    new = await put(at.agent(), "a", "2")
    at.values["a"] = "by hand"
    plan = (await at.person().undo.preview(session="s1")).plan
    assert {s.act: s.status for s in plan.steps} == {new: "conflict", old: "conflict"}
    at.values["a"] = "1"
    outcome = await at.person().undo.rewind(session="s1", skip_conflicts=True)
    assert at.values == {}
    assert undone(outcome) == [new, old]


async def test_skipping_everything_does_nothing(at):
    act = await put(at.agent(), "a")
    at.values["a"] = "by hand"
    outcome = await at.person().undo.rewind(session="s1", skip_conflicts=True)
    assert (outcome.results, outcome.act) == ([], None)
    assert [s.act for s in outcome.plan.steps] == [act]
    assert len(await at.rows()) == 1


async def test_a_skipping_rewind_is_held_to_its_digest(at):
    await put(at.agent(), "a")
    await put(at.agent(), "b")
    at.values["a"] = "by hand"
    plan = (await at.person().undo.preview(session="s1")).plan
    at.values["a"] = "by hand again"
    with pytest.raises(ConflictError) as refused:
        await at.person().undo.rewind(session="s1", skip_conflicts=True, digest=plan.digest)
    assert refused.value.code == "undo.plan_changed"


async def test_a_final_act_holds_a_rewind_until_it_is_skipped(at):
    await put(at.agent(), "a")
    made = await at.module().undo.record(tool="notes.put", summary="sent", final_reason="it left the machine")
    await at.change("UPDATE undo_acted SET session = 's1' WHERE id = ?", made.id)
    await put(at.agent(), "b")
    plan = (await at.person().undo.preview(session="s1")).plan
    assert [(s.status, s.reason) for s in plan.steps][1] == ("not_undoable", "it left the machine")
    with pytest.raises(RefusedError) as refused:
        await at.person().undo.rewind(session="s1")
    assert refused.value.code == "undo.not_undoable"
    assert at.values == {"a": "1", "b": "1"}
    await at.person().undo.rewind(session="s1", skip_conflicts=True)
    assert at.values == {}
    assert await at.state(made.id) == "final"


async def test_one_undo_act_stands_for_the_whole_plan(at):
    for key in "abc":
        await put(at.agent(), key)
    outcome = await at.person().undo.rewind(session="s1")
    listed = (await at.person().undo.list()).acts
    assert (listed[0].id, listed[0].role, listed[0].summary) == (outcome.act, "undo", "rewind of 3 acts")
    assert {act.undone_in for act in listed[1:]} == {outcome.act}
    shown = await at.person().undo.show(id=outcome.act)
    assert {child.role for child in shown.children} == {"counter"}
    assert len(shown.children) == 3
