"""What can't be taken back cleanly is named, and nobody's work is lost over it."""

import pytest

from takeback import ConflictError, RefusedError, TakebackError
from takeback.faults import install
from takeback_core.undo.models import Conflict

pytestmark = pytest.mark.anyio


async def put(who, key, value):
    return (await who.notes.put(key=key, value=value)).act


async def refused(who, verb, kind=ConflictError, **given):
    with pytest.raises(kind) as error:
        await who.call(f"undo.{verb}", given)
    return error.value


def steps(plan):
    return {step.act: step.status for step in plan.steps}


# ---------------------------------------------------------------- foreign edits


async def test_a_foreign_edit_is_a_conflict_with_base_ours_and_theirs(at):
    act = await put(at.agent(), "a", "1")
    at.values["a"] = "by hand"
    error = await refused(at.person(), "run", id=act)
    assert error.code == "undo.conflict"
    (conflict,) = error.data["plan"]["conflicts"]
    assert Conflict(**conflict) == Conflict(
        act=act,
        resource="notes:a",
        status="conflict",
        reason="somebody changed it since",
        base="v:1",
        ours="v:by hand",
        theirs="absent",
    )
    assert at.values == {"a": "by hand"}
    assert await at.state(act) == "done"


@pytest.mark.parametrize("inverse", ["notes.restore", "notes.restore_plain", "notes.restore_blind"])
async def test_a_foreign_edit_survives_every_kind_of_inverse(at, inverse):
    at.notebook.inverse = inverse
    act = await put(at.agent(), "a", "1")
    at.values["a"] = "by hand"
    assert steps((await at.person().undo.preview(id=act)).plan) == {act: "conflict"}
    await refused(at.person(), "run", id=act)
    await refused(at.agent(), "run", id=act)
    assert at.values == {"a": "by hand"}


async def test_a_note_that_is_gone_is_named_so(at):
    await put(at.agent(), "a", "1")
    act = await put(at.agent(), "a", "2")
    del at.values["a"]
    plan = (await at.person().undo.preview(id=act)).plan
    assert steps(plan) == {act: "gone"}
    assert plan.conflicts[0].ours == "absent"
    await refused(at.person(), "run", id=act)
    assert at.values == {}


@pytest.mark.parametrize("inverse", ["notes.restore", "notes.restore_plain", "notes.restore_blind"])
async def test_what_is_as_before_already_is_skipped(at, inverse):
    at.notebook.inverse = inverse
    at.values["a"] = "0"
    act = await put(at.agent(), "a", "1")
    at.values["a"] = "0"
    outcome = await at.person().undo.run(id=act)
    (effect,) = outcome.plan.steps[0].effects
    assert (effect.action, effect.reason) == ("skip", "unchanged")
    assert await at.state(act) == "undone"
    assert at.notebook.ran == []
    assert at.values == {"a": "0"}


async def test_a_rename_of_which_half_was_changed_is_left_whole(at):
    await put(at.agent(), "a", "1")
    act = (await at.agent().notes.rename(key="a", to="b")).act
    at.values["b"] = "by hand"
    error = await refused(at.person(), "run", id=act)
    assert error.code == "undo.conflict"
    assert at.values == {"b": "by hand"}


async def test_a_change_at_the_very_moment_is_refused_and_survives(at):
    act = await put(at.agent(), "a", "1")

    def meddle(point):
        if point == "undo.step":
            at.values["a"] = "just now"

    remove = install(meddle)
    try:
        error = await refused(at.person(), "run", id=act)
    finally:
        remove()
    assert (error.code, error.data["cause"]) == ("undo.failed", "undo.changed")
    assert at.values == {"a": "just now"}
    assert await at.state(act) == "failed"


async def test_a_change_right_after_the_effect_is_not_reported_as_done(at):
    """The note was brought back, and then somebody changed it: it is theirs, and the log does not guess."""
    at.values["a"] = "0"
    act = await put(at.agent(), "a", "1")

    def meddle(point):
        if point == "undo.verifying":
            at.values["a"] = "just now"

    remove = install(meddle)
    try:
        error = await refused(at.person(), "run", id=act)
    finally:
        remove()
    assert error.data["cause"] == "undo.not_as_planned"
    assert at.values == {"a": "just now"}
    assert await at.state(act) == "unknown"


@pytest.mark.parametrize(
    ("objection", "status", "code"),
    [
        (ConflictError("notes.locked", "It is open elsewhere"), "conflict", "undo.conflict"),
        (RefusedError("notes.sealed", "It is sealed"), "not_undoable", "notes.sealed"),
        (TakebackError("notes.broken", "The notebook is stuck"), "not_undoable", "notes.broken"),
    ],
)
async def test_what_the_owner_says_in_the_rehearsal_is_in_the_plan(at, objection, status, code):
    await at.agent().notes.put(key="a", value="1")
    act = (await at.agent().notes.rename(key="a", to="b")).act
    at.notebook.objects = objection
    plan = (await at.person().undo.preview(id=act)).plan
    assert steps(plan) == {act: status}
    assert objection.message in plan.steps[0].reason
    for who, more in ((at.agent(), {}), (at.person(present=True), {"force": True})):
        error = await refused(who, "run", TakebackError, id=act, **more)
        assert (error.code, objection.message in error.message) == (code, True)
    assert at.values == {"b": "1"}
    assert at.notebook.ran == []


# ---------------------------------------------------------------- merging


async def test_a_merge_takes_back_only_what_the_act_did(at):
    at.notebook.merges = True
    at.values["a"] = "one,two"
    act = await put(at.agent(), "a", "one,three")
    at.values["a"] = "four,one,three"
    outcome = await at.person().undo.run(id=act)
    assert steps(outcome.plan) == {act: "merge"}
    assert [e.action for e in outcome.plan.steps[0].effects] == ["merge"]
    assert at.values == {"a": "four,one,two"}
    await at.person().undo.redo(id=act)
    assert at.values == {"a": "four,one,three"}


async def test_merges_one_after_another_are_planned_exactly(at):
    at.notebook.merges = True
    at.values["a"] = "one,two"
    first = await put(at.agent(), "a", "one,two,x")
    second = await put(at.agent(), "a", "one,two,x,y")
    at.values["a"] = "hand,one,two,x,y"
    plan = (await at.person().undo.preview(session="s1")).plan
    assert steps(plan) == {second: "merge", first: "merge"}
    assert [step.effects[0].version for step in plan.steps] == ["v:hand,one,two,x", "v:hand,one,two"]
    assert at.values == {"a": "hand,one,two,x,y"}
    await at.person().undo.rewind(session="s1", digest=plan.digest)
    assert at.values == {"a": "hand,one,two"}


async def test_what_can_t_be_merged_is_a_conflict(at):
    at.notebook.merges = True
    act = await put(at.agent(), "a", "one,two")
    at.values["a"] = "no words"
    assert steps((await at.person().undo.preview(id=act)).plan) == {act: "conflict"}


# ---------------------------------------------------------------- dependents


async def test_later_acts_are_offered_newest_first(at):
    me = at.person()
    acts = [await put(at.agent(), "a", str(n)) for n in range(4)]
    plan = (await me.undo.preview(id=acts[0])).plan
    assert steps(plan) == {acts[0]: "dependents"}
    assert plan.steps[0].dependents == acts[:0:-1]
    error = await refused(me, "run", id=acts[0])
    assert error.code == "undo.dependents"
    assert at.values == {"a": "3"}


async def test_dependents_come_along_when_asked(at):
    acts = [await put(at.agent(), "a", str(n)) for n in range(4)]
    await put(at.agent(), "b", "1")
    outcome = await at.person().undo.run(id=acts[1], dependents=True)
    assert [step.act for step in outcome.plan.steps] == acts[:0:-1]
    assert at.values == {"a": "0", "b": "1"}
    await at.person().undo.redo(id=outcome.act)
    assert at.values == {"a": "3", "b": "1"}


async def test_dependents_of_dependents_come_along(at):
    await put(at.agent(), "a", "1")
    first = (await at.agent().notes.rename(key="a", to="b")).act
    second = (await at.agent().notes.rename(key="b", to="c")).act
    third = await put(at.agent(), "c", "2")
    outcome = await at.person().undo.run(id=first, dependents=True)
    assert [step.act for step in outcome.plan.steps] == [third, second, first]
    assert at.values == {"a": "1"}


async def test_what_lies_beneath_or_around_is_a_dependent(at):
    inner = await put(at.agent(), "folder/one", "1")
    tree = await put(at.agent(), "folder/", "whole")
    assert steps((await at.person().undo.preview(id=inner)).plan) == {inner: "dependents"}
    later = await put(at.agent(), "folder/two", "2")
    plan = (await at.person().undo.preview(id=tree)).plan
    assert plan.steps[0].dependents == [later]
    beside = await put(at.agent(), "folder-beside", "3")
    assert steps((await at.person().undo.preview(id=beside)).plan) == {beside: "clean"}
    assert beside not in (await at.person().undo.preview(id=tree)).plan.steps[0].dependents


async def test_more_dependents_than_are_looked_at_at_once(at):
    acts = [await put(at.agent(), "a", str(n)) for n in range(450)]
    outcome = await at.person().undo.run(id=acts[10], dependents=True)
    assert len(outcome.results) == 440
    assert at.values == {"a": "9"}


async def test_an_undone_act_is_no_dependent(at):
    first, second = [await put(at.agent(), "a", str(n)) for n in range(2)]
    await at.person().undo.run(id=second)
    assert steps((await at.person().undo.preview(id=first)).plan) == {first: "clean"}


async def test_an_agent_s_plan_never_takes_another_s_act_along(at):
    mine = await put(at.agent(), "a", "juno's")
    theirs = await put(at.agent("zoe"), "a", "zoe's")
    for dependents in (False, True):
        plan = (await at.agent().undo.preview(id=mine, dependents=dependents)).plan
        assert steps(plan) == {mine: "conflict"}
        assert plan.steps[0].dependents == []
        assert [(c.by, c.at, c.dependents) for c in plan.conflicts] == [(None, None, [])]
        assert "zoe" not in plan.model_dump_json().replace("v:zoe's", "")
        error = await refused(at.agent(), "run", id=mine, dependents=dependents)
        assert error.code == "undo.conflict"
    assert at.values == {"a": "zoe's"}
    assert await at.state(theirs) == "done"


async def test_the_person_may_take_another_s_act_along(at):
    mine = await put(at.agent(), "a", "juno's")
    theirs = await put(at.agent("zoe"), "a", "zoe's")
    plan = (await at.person().undo.preview(id=mine)).plan
    assert steps(plan) == {mine: "dependents"}
    assert [c.by for c in plan.conflicts] == ["mcp:agent:zoe"]
    await at.person().undo.run(id=mine, dependents=True)
    assert at.values == {}
    assert [await at.state(act) for act in (mine, theirs)] == ["undone", "undone"]


# ---------------------------------------------------------------- an unbroken chain


@pytest.mark.parametrize("other", ["another agent", "another session", "the person"])
async def test_a_b_a_is_a_conflict_and_loses_nothing_of_b_s(at, other):
    b = {
        "another agent": at.agent("zoe", session="s9"),
        "another session": at.agent(session="s2"),
        "the person": at.person(),
    }[other]
    first = await put(at.agent(), "a", "a1")
    theirs = await put(b, "a", "b1")
    last = await put(at.agent(), "a", "a2")
    for who in (at.person(), at.agent()):
        plan = (await who.undo.preview(session="s1")).plan
        assert steps(plan) == {last: "clean", first: "conflict"}
        error = await refused(who, "rewind", session="s1")
        assert error.code == "undo.conflict"
    assert at.values == {"a": "a2"}
    await at.agent().undo.rewind(session="s1", skip_conflicts=True)
    assert at.values == {"a": "b1"}
    assert [await at.state(act) for act in (first, theirs, last)] == ["done", "done", "undone"]


async def test_a_hand_s_edit_between_two_acts_breaks_the_chain(at):
    first = await put(at.agent(), "a", "a1")
    at.values["a"] = "by hand"
    last = await put(at.agent(), "a", "a2")
    assert steps((await at.person().undo.preview(session="s1")).plan) == {last: "clean", first: "conflict"}
    await refused(at.person(), "rewind", session="s1")
    await at.person().undo.rewind(session="s1", skip_conflicts=True)
    assert at.values == {"a": "by hand"}


async def test_b_s_act_with_the_same_content_is_not_taken_back_for_a_s(at):
    first = await put(at.agent(), "a", "same")
    await put(at.agent("zoe"), "a", "same")
    assert steps((await at.agent().undo.preview(id=first)).plan) == {first: "conflict"}
    await refused(at.agent(), "run", id=first)
    assert at.values == {"a": "same"}


# ---------------------------------------------------------------- force


async def test_force_is_the_person_s_alone(at):
    act = await put(at.agent(), "a", "1")
    at.values["a"] = "by hand"
    for who in (at.agent(), at.module()):
        for verb in ("run", "redo", "preview"):
            error = await refused(who, verb, RefusedError, id=act, force=True)
            assert error.code == "undo.force_person"
    assert at.values == {"a": "by hand"}


async def test_force_needs_the_person_there(at):
    act = await put(at.agent(), "a", "1")
    at.values["a"] = "by hand"
    for verb in ("run", "redo"):
        error = await refused(at.person(), verb, RefusedError, id=act, force=True)
        assert error.code == "undo.force_presence"
    error = await refused(at.person(), "rewind", RefusedError, session="s1", force=True)
    assert error.code == "undo.force_presence"
    assert at.values == {"a": "by hand"}


@pytest.mark.parametrize("inverse", ["notes.restore", "notes.restore_blind"])
async def test_force_captures_what_it_overwrites_and_is_undone_itself(at, inverse):
    at.notebook.inverse = inverse
    me = at.person(present=True)
    at.values["a"] = "0"
    act = await put(at.agent(), "a", "1")
    at.values["a"] = "by hand"
    forced = await me.undo.run(id=act, force=True)
    assert at.values == {"a": "0"}
    assert await at.state(act) == "undone"
    await me.undo.run(id=forced.act)
    assert at.values == {"a": "by hand"}
    assert await at.state(act) == "done"
    await me.undo.run(id=act, force=True)
    await me.undo.redo(id=act)
    assert at.values == {"a": "by hand"}


async def test_a_forced_plan_says_which_steps_it_forces(at):
    me = at.person(present=True)
    clean = await put(at.agent(), "b", "1")
    act = await put(at.agent(), "a", "1")
    at.values["a"] = "by hand"
    plan = (await me.undo.preview(session="s1", force=True)).plan
    assert {s.act: [(e.action, e.version) for e in s.effects] for s in plan.steps} == {
        act: [("delete", "absent")],
        clean: [("delete", "absent")],
    }
    assert {s.act: s.forced for s in plan.steps} == {act: True, clean: False}
    await me.undo.rewind(session="s1", force=True, digest=plan.digest)
    assert at.values == {}


async def test_force_with_the_digest_of_the_plan_that_was_looked_at(at):
    me = at.person(present=True)
    act = await put(at.agent(), "a", "1")
    at.values["a"] = "by hand"
    digest = (await at.person().undo.preview(id=act)).plan.digest
    at.values["a"] = "by hand, and more"
    error = await refused(me, "run", id=act, digest=digest, force=True)
    assert error.code == "undo.plan_changed"
    assert at.values == {"a": "by hand, and more"}
    digest = (await at.person().undo.preview(id=act)).plan.digest
    await me.undo.run(id=act, digest=digest, force=True)
    assert at.values == {}


async def test_force_over_dependents_keeps_them_for_a_redo(at):
    me = at.person(present=True)
    acts = [await put(at.agent(), "a", str(n)) for n in range(3)]
    forced = await me.undo.run(id=acts[0], force=True)
    assert at.values == {}
    assert [await at.state(act) for act in acts] == ["undone", "done", "done"]
    await me.undo.redo(id=forced.act)
    assert at.values == {"a": "2"}


async def test_force_merges_where_a_merge_is_clean(at):
    at.notebook.merges = True
    at.values["a"] = "one,two"
    act = await put(at.agent(), "a", "one,two,x")
    at.values["a"] = "hand,one,two,x"
    await at.person(present=True).undo.run(id=act, force=True)
    assert at.values == {"a": "hand,one,two"}


async def test_force_can_t_undo_what_has_no_inverse(at):
    made = await at.module().undo.record(tool="notes.put", summary="sent", final_reason="it left the machine")
    error = await refused(at.person(present=True), "run", RefusedError, id=made.id, force=True)
    assert error.code == "undo.not_undoable"


async def test_a_forced_change_is_still_checked_at_the_moment(at):
    """What was captured for a way back must be what is overwritten."""
    act = await put(at.agent(), "a", "1")
    at.values["a"] = "by hand"

    def meddle(point):
        if point == "undo.step":
            at.values["a"] = "just now"

    remove = install(meddle)
    try:
        with pytest.raises(TakebackError):
            await at.person(present=True).undo.run(id=act, force=True)
    finally:
        remove()
    assert at.values == {"a": "just now"}
