"""Recorded sessions of every agent: each act is the agent's, and a rewind leaves nothing of the session."""

import json

import pytest

from takeback.errors import ConflictError
from tests.hooks.desk import AGENTS, SESSION, is_after, is_before, name_of, tree

pytestmark = pytest.mark.anyio

every_agent = pytest.mark.parametrize("agent", AGENTS)


@every_agent
async def test_a_session_is_three_acts_of_the_agent_and_is_taken_back(desk, agent):
    before = tree(desk.root)
    await desk.play(agent, desk.events(agent))
    acts = await desk.acts()
    assert len(acts) == 3
    assert {(act.actor, act.session, act.state) for act in acts} == {(f"hook:agent:{agent}", SESSION, "done")}
    assert len({act.turn for act in acts}) == 1
    assert acts[0].turn
    assert await desk.lost() == []
    await desk.rewind(session=SESSION)
    assert tree(desk.root) == before


@every_agent
async def test_the_same_by_real_gates(desk, agent):
    before = tree(desk.root)
    await desk.play(agent, desk.events(agent), bring=desk.gate)
    assert len(await desk.acts()) == 3
    await desk.rewind(session=SESSION)
    assert tree(desk.root) == before


@every_agent
async def test_ends_that_never_come_are_settled_by_looking(desk, agent):
    before = tree(desk.root)
    events = [event for event in desk.events(agent) if not is_after(event)]
    await desk.play(agent, events)
    acts = await desk.acts()
    assert len(acts) == 3
    await desk.rewind(session=SESSION)
    assert tree(desk.root) == before


@every_agent
async def test_everything_told_twice_is_one_act_each(desk, agent):
    before = tree(desk.root)
    works = iter(_works(desk, agent))
    for event in desk.events(agent):
        await desk.bring(agent, event)
        await desk.bring(agent, event)
        if is_before(event):
            next(works)()
    assert len(await desk.acts()) == 3
    await desk.rewind(session=SESSION)
    assert tree(desk.root) == before


@every_agent
async def test_ends_that_come_after_everything_else_change_nothing_more(desk, agent):
    before = tree(desk.root)
    events = desk.events(agent)
    on_time = [event for event in events if not is_after(event)]
    await desk.play(agent, on_time + [event for event in events if is_after(event)])
    assert len(await desk.acts()) == 3
    await desk.rewind(session=SESSION)
    assert tree(desk.root) == before


@every_agent
async def test_an_end_before_its_beginning_is_no_act_and_is_told(desk, agent):
    events = desk.events(agent)
    at = next(number for number, event in enumerate(events) if is_before(event))
    events[at], events[at + 1] = events[at + 1], events[at]
    (desk.root / "a.txt").write_text("two\n")
    for event in events[: at + 2]:
        await desk.bring(agent, event)
    assert await desk.acts() == []
    assert "nobody told its beginning" in await desk.lost()


_OTHER_NAMES = {
    "session_id": "sessionId",
    "sessionID": "session_id",
    "conversation_id": "conversationId",
    "tool_name": "toolName",
    "tool_input": "toolInput",
    "tool_use_id": "toolUseId",
    "callID": "callId",
    "hook_event_name": "hookEventName",
    "prompt_id": "promptId",
    "turn_id": "turnId",
}


@every_agent
async def test_fields_under_other_names_are_known_as_well(desk, agent):
    before = tree(desk.root)
    works = iter(_works(desk, agent))
    for event in desk.events(agent):
        await desk.bring(agent, {_OTHER_NAMES.get(key, key): value for key, value in event.items()})
        if is_before(event):
            next(works)()
    assert len(await desk.acts()) == 3
    await desk.rewind(session=SESSION)
    assert tree(desk.root) == before


@every_agent
@pytest.mark.parametrize(
    "gone",
    [
        ("tool_use_id", "callID"),
        ("prompt_id", "turn_id", "generation_id", "messageID"),
        ("tool_name", "tool"),
        ("transcript_path", "permission_mode", "model", "tool_response", "tool_output", "timestamp"),
    ],
    ids=lambda gone: gone[0],
)
async def test_fields_that_are_gone_leave_three_acts(desk, agent, gone):
    before = tree(desk.root)
    events = [{k: v for k, v in event.items() if k not in gone} for event in desk.events(agent)]
    await desk.play(agent, events)
    assert len(await desk.acts()) == 3
    await desk.rewind(agent=agent)
    assert tree(desk.root) == before


@every_agent
async def test_a_session_that_is_not_named_is_its_processes(desk, agent):
    before = tree(desk.root)
    names = ("session_id", "sessionID", "conversation_id")
    events = [{k: v for k, v in event.items() if k not in names} for event in desk.events(agent)]
    await desk.play(agent, events)
    assert len({act.session for act in await desk.acts()}) == 1
    await desk.rewind(agent=agent)
    assert tree(desk.root) == before


@every_agent
async def test_ends_that_lost_their_numbers_and_inputs_find_their_beginnings(desk, agent):
    gone = ("tool_use_id", "callID", "tool_input", "args", "tool_name", "tool")
    events = [
        {k: v for k, v in event.items() if not is_after(event) or k not in gone}
        for event in desk.events(agent)
    ]
    await desk.play(agent, events)
    assert len(await desk.acts()) == 3
    assert not any("interrupted" in act.summary for act in await desk.acts())


@every_agent
async def test_events_nobody_knows_are_passed(desk, agent):
    for event in desk.events(agent):
        odd = {**event, "hook_event_name": "SomethingNew", "event": "something.new"}
        assert await desk.bring(agent, odd) == b"."
    assert await desk.acts() == []
    assert await desk.lost() == []


async def test_each_prompt_is_a_turn_also_where_the_agent_numbers_none(desk):
    events = desk.events("gemini")
    await desk.play("gemini", events)
    (desk.root / "a.txt").write_text("one\n")
    await desk.play("gemini", events[1:4])
    assert [act.turn for act in await desk.acts()] == ["2", "1", "1", "1"]


async def test_a_turn_is_taken_back_alone(desk):
    await desk.play("claude", desk.events("claude"))
    later = [{**event, "prompt_id": "second"} for event in desk.events("claude")]
    at = next(number for number, event in enumerate(later) if is_before(event))
    for number, event in enumerate(later[: at + 2]):
        event.pop("tool_response", None)  # what it found this time is another text
        if "tool_use_id" in event:
            event["tool_use_id"] += "-again"
        await desk.bring("claude", event)
        if number == at:
            (desk.root / "a.txt").write_text("three\n")
    await desk.rewind(session=SESSION, turn="second")
    assert (desk.root / "a.txt").read_text() == "two\n"
    assert (desk.root / "b.txt").exists()


async def test_commands_that_overlap_in_one_session_are_one_act(desk):
    before = tree(desk.root)
    events = desk.events("claude")
    begin, end = [event for event in events if event.get("tool_name") == "Bash"]
    other = [{**event, "tool_use_id": "toolu_other"} for event in (begin, end)]
    await desk.bring("claude", begin)
    await desk.bring("claude", other[0])
    (desk.root / "b.txt").write_text("hi\n")
    await desk.bring("claude", end)
    (desk.root / "x.txt").write_text("hi\n")
    await desk.bring("claude", other[1])
    (act,) = await desk.acts()
    assert len(act.touched) == 2
    await desk.person.undo.run(id=act.id)
    assert tree(desk.root) == before


async def test_a_mode_that_an_agents_command_gave_a_folder_is_taken_back(desk):
    (desk.root / "d").mkdir(mode=0o755)
    begin, end = [event for event in desk.events("claude") if event.get("tool_name") == "Bash"]
    await desk.bring("claude", begin)
    (desk.root / "d").chmod(0o777)
    await desk.bring("claude", end)
    (act,) = await desk.acts()
    assert [item.resource for item in act.touched] == [f"files:{desk.root}/d/."]
    await desk.rewind(session=SESSION)
    assert (desk.root / "d").stat().st_mode & 0o777 == 0o755


async def test_a_command_in_the_background_is_recorded_when_the_agent_is_done(desk):
    events = desk.events("claude")
    for event in events:
        if event.get("tool_name") == "Bash":
            event["tool_input"]["run_in_background"] = True
    await desk.play("claude", [event for event in events if name_of(event) != "sessionend"][:6])
    assert len(await desk.acts()) == 1
    (desk.root / "later.txt").write_text("by the command")
    await desk.bring("claude", next(event for event in events if name_of(event) == "stop"))
    acts = await desk.acts()
    assert len(acts) == 2
    assert len(acts[0].touched) == 2


async def test_a_persons_edit_meanwhile_survives(desk):
    await desk.play("claude", desk.events("claude"))
    (desk.root / "d" / "c.txt").write_text("of a person\n")
    with pytest.raises(ConflictError):
        await desk.rewind(session=SESSION)
    await desk.rewind(session=SESSION, skip_conflicts=True)
    assert (desk.root / "d" / "c.txt").read_text() == "of a person\n"
    assert (desk.root / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("agent", ["claude", "gemini"])
async def test_what_a_person_saved_while_the_agent_asked_is_not_taken_for_the_agents(desk, agent):
    path = desk.root / "a.txt"
    begin, end = [event for event in desk.events(agent) if is_before(event) or is_after(event)][:2]
    await desk.bring(agent, begin)
    path.write_text("one\nof the person\n")
    path.write_text("two\nof the person\n")
    told = json.loads(json.dumps(end).replace(r'"one\n"', r'"one\nof the person\n"'))
    assert told != end
    await desk.bring(agent, told)
    (act,) = await desk.acts()
    assert act.actor == "module:files"
    assert any(line.startswith("coincident") for line in act.why)
    await desk.rewind(agent=agent)
    assert path.read_text() == "two\nof the person\n"


@pytest.mark.parametrize("before", [b"one\r\n", b"\xef\xbb\xbfone\n", b"one"])
async def test_an_agent_that_reads_text_in_its_own_way_is_still_the_one(desk, before):
    path = desk.root / "a.txt"
    path.write_bytes(before)
    begin, end = [event for event in desk.events("claude") if is_before(event) or is_after(event)][:2]
    await desk.bring("claude", begin)
    path.write_text("two\n")
    await desk.bring("claude", end)
    await desk.rewind(agent="claude")
    assert path.read_bytes() == before


def _works(desk, agent):
    from tests.hooks.desk import works_of

    return works_of(agent, desk.root)
