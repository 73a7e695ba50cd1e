"""What agents, disks and strangers bring: the agent never notices, and the person is told what was missed."""

import errno
import json
import os
import shlex
import sqlite3

import anyio
import pytest

from takeback import faults
from tests.hooks.desk import AGENTS, Desk, is_after, is_before, open_kernel, recorded, tree

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "event",
    [
        b"",
        b"{",
        b"[1, 2]",
        b'"text"',
        b"null",
        b"\xff\xfe\x00",
        b"[" * 200_000,
        b"{}",
        b'{"hook_event_name": 7, "tool_name": ["x"], "tool_input": 3, "session_id": {}}',
        b'{"hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": {"file_path": "\\u0000"}}',
        b'{"hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": {"file_path": "\\ud800"}}',
        b'{"hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": "x", "tool_input": {"command": []}}',
        b'{"hook_event_name": "PreToolUse", "tool_name": "Edit", "cwd": "/", "tool_input": {"path": ".."}}',
    ],
    ids=range(13),
)
async def test_malformed_events_are_passed(desk, event):
    await desk.gate("claude", event)
    await desk.gate("claude", {"hook_event_name": "Stop", "session_id": "s"})
    before = tree(desk.root)
    await desk.play("claude", desk.events("claude"))
    await desk.rewind(agent="claude")
    assert tree(desk.root) == before


@pytest.mark.parametrize("size", [5 << 20, 40 << 20])
async def test_huge_events_are_passed(desk, size):
    event = {"hook_event_name": "Nothing", "session_id": "s", "more": "x" * size}
    await desk.gate("claude", event)
    assert (await desk.lost() != []) == (size > 32 << 20)


async def test_an_agent_nobody_knows_is_passed_and_told(desk):
    await desk.gate("stranger", {"hook_event_name": "PreToolUse"})
    assert "no agent 'stranger'" in (await desk.lost())[0]


@pytest.mark.parametrize("agent", AGENTS)
async def test_paths_outside_every_root_are_let_pass_and_the_log_says_so(desk, agent, place):
    outside = place / "elsewhere.txt"
    outside.write_text("one\n")
    events = json.loads(json.dumps(desk.events(agent)).replace(f"{desk.root}/a.txt", str(outside)))
    events = json.loads(json.dumps(events).replace("File: a.txt", f"File: {outside}"))
    before, after = (event for event in events[2:4])
    await desk.bring(agent, before)
    outside.write_text("two\n")
    await desk.bring(agent, after)
    (act,) = await desk.acts()
    assert (act.state, act.undoable) == ("final", False)
    assert "not captured" in act.summary
    assert "outside the folders" in (await desk.lost())[0]


async def test_ten_thousand_events_at_once_are_all_answered(desk):
    path = desk.root / "a.txt"
    limit = anyio.CapacityLimiter(400)
    answers = []

    def event(name, number):
        return {
            "hook_event_name": name,
            "session_id": f"s{number % 7}",
            "cwd": str(desk.root),
            "tool_name": "Edit" if number % 10 == 0 else "Read",
            "tool_use_id": f"t{number}",
            "tool_input": {"file_path": str(path)},
        }

    async def bring(number):
        async with limit:
            answers.append(await desk.bring("claude", event("PreToolUse", number)))
            answers.append(await desk.bring("claude", event("PostToolUse", number)))

    with anyio.fail_after(100):
        async with anyio.create_task_group() as tasks:
            for number in range(5000):
                tasks.start_soon(bring, number)
    assert answers == [b"."] * 10_000
    assert await desk.lost() == []
    assert (await desk.person.call("hook.status")).open_calls == 0


async def test_a_gate_that_hangs_up_early_is_told_as_too_late(desk):
    begin = next(event for event in desk.events("claude") if is_before(event))
    recorded_there = anyio.Event()
    gone = anyio.Event()

    def hold(name):
        if name == "files.edit_begun":
            recorded_there.set()

    remove = faults.install(hold)
    try:
        stream = await anyio.connect_unix(str(desk.socket))
        await stream.send(b"claude\n" + json.dumps(begin).encode())
        await stream.send_eof()
        await stream.aclose()
        gone.set()
        with anyio.fail_after(20):
            await recorded_there.wait()
    finally:
        remove()
    (desk.root / "a.txt").write_text("two\n")
    await desk.bring("claude", {**begin, "hook_event_name": "PostToolUse"})
    assert len(await desk.acts()) <= 1


async def test_a_full_disk_keeps_no_agent_from_anything(desk, monkeypatch):
    events = desk.events("claude")
    real = os.write

    def full(handle, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    def refuse(name):
        if name == "files.edit_begun":
            raise sqlite3.OperationalError("database or disk is full")

    big = "x" * (2 << 20)
    (desk.root / "a.txt").write_text(big)
    monkeypatch.setattr(os, "write", full)
    remove = faults.install(refuse)
    try:
        for event in events[:6]:
            assert await desk.bring("claude", event) == b"."
    finally:
        remove()
        monkeypatch.setattr(os, "write", real)
    assert await desk.lost() != []
    for event in events[6:]:
        assert await desk.bring("claude", event) == b"."
    checks = {check.name: check for check in (await desk.person.call("kernel.doctor")).checks}
    assert not checks["captured by hooks"].ok
    assert "not captured in the last day" in checks["captured by hooks"].detail


@pytest.mark.parametrize("agent", AGENTS)
async def test_what_a_stopped_daemon_left_open_ends_in_the_next(place, root, agent):
    before = tree(root)
    events = recorded(agent, root)
    at = next(number for number, event in enumerate(events) if is_before(event))
    async with open_kernel(place / "home") as kernel:
        for event in events[: at + 1]:
            await Desk(kernel, root).bring(agent, event)
    (root / "a.txt").write_text("two\n")
    async with open_kernel(place / "home") as kernel:
        desk = Desk(kernel, root)
        await desk.bring(agent, events[at + 1])
        (act,) = await desk.acts()
        assert "interrupted" not in act.summary
        await desk.person.undo.run(id=act.id)
        assert tree(root) == before


async def test_what_an_agent_left_open_that_is_gone_is_settled_at_the_next_start(place, root):
    before = tree(root)
    events = [event for event in recorded("claude", root) if not is_after(event)]
    async with open_kernel(place / "home") as kernel:
        desk = Desk(kernel, root)
        for event in events[:3]:
            # The process that brings these is gone as soon as it has.
            await anyio.run_process(
                ["sh", "-c", 'sh -c "$GATE"; exit 0'],
                input=json.dumps(event).encode(),
                env={"GATE": shlex.join(desk.command("claude"))},
            )
    (root / "a.txt").write_text("two\n")
    async with open_kernel(place / "home") as kernel:
        desk = Desk(kernel, root)
        with anyio.fail_after(20):
            while (await desk.person.call("hook.status")).open_calls:
                await anyio.lowlevel.checkpoint()
        (act,) = await desk.acts()
        assert "interrupted" in act.summary
        await desk.person.undo.run(id=act.id)
    assert tree(root) == before


async def test_a_folder_that_is_switched_off_is_left_alone(place, root):
    async with open_kernel(place / "home", files={"not_captured": [str(root)]}) as kernel:
        desk = Desk(kernel, root)
        await desk.play("claude", desk.events("claude"))
        assert await desk.acts() == []
        assert await desk.lost() == []


async def test_two_agents_in_one_repository_keep_what_is_theirs(desk):
    mine, theirs = desk.events("claude", "mine"), desk.events("gemini", "theirs")
    (desk.root / "g.txt").write_text("one\n")
    before = tree(desk.root)
    theirs = json.loads(json.dumps(theirs).replace("a.txt", "g.txt"))
    await desk.bring("claude", mine[2])
    await desk.bring("gemini", theirs[2])
    (desk.root / "a.txt").write_text("two\n")
    (desk.root / "g.txt").write_text("two\n")
    await desk.bring("claude", mine[3])
    await desk.bring("gemini", theirs[3])
    await desk.rewind(agent="claude")
    assert (desk.root / "g.txt").read_text() == "two\n"
    await desk.rewind(agent="gemini")
    assert tree(desk.root) == before


async def test_a_link_is_followed_as_the_agent_does(desk):
    (desk.root / "link.txt").symlink_to("a.txt")
    begin, end = desk.events("claude")[2:4]
    for event in (begin, end):
        event["tool_input"]["file_path"] = str(desk.root / "link.txt")
    await desk.bring("claude", begin)
    (desk.root / "link.txt").write_text("two\n")
    await desk.bring("claude", end)
    await desk.rewind(agent="claude")
    assert (desk.root / "a.txt").read_text() == "one\n"
    assert (desk.root / "link.txt").is_symlink()


async def test_takebacks_own_tools_are_not_captured_twice(desk):
    begin, end = desk.events("claude")[2:4]
    for event in (begin, end):
        event["tool_name"] = "mcp__takeback__files_write"
    await desk.bring("claude", begin)
    (desk.root / "a.txt").write_text("two\n")
    await desk.bring("claude", end)
    assert await desk.acts() == []
