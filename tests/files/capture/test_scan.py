"""The scan without a watcher: what the times don't show, and processes that die."""

import errno
import mmap
import os
import signal
import sys
import threading

import anyio
import pytest

from takeback.errors import TakebackError
from takeback_acts.files.capture import crew, marks
from takeback_acts.files.capture.crew import Crew
from tests.files.capture.rig import Rig, only, whats

pytestmark = pytest.mark.anyio


@pytest.fixture
def rig(tmp_path):
    rig = Rig(tmp_path)
    for number in range(50):
        rig.write(f"{number % 5}/{number}", b"%d" % number)
    return rig


async def test_a_write_within_the_tick_of_the_look_is_seen(rig):
    path = rig.write("file", b"one")
    capture = rig.capture()
    await capture.baseline()
    node, row = capture._engine.tree.top, capture._engine.tree.top.row(b"file")
    assert row.racy
    path.write_bytes(b"two")
    # As if the clock had not moved on between the two writes.
    found = path.stat()
    capture._engine.tree.put(node, b"file", row._replace(mark=marks.mark(found)))
    changes = await capture.after()
    assert rig.bytes_before(changes, "file") == b"one"
    await capture.close()


async def test_a_file_read_long_after_its_last_write_is_not_read_again(rig):
    path = rig.root / "0" / "0"
    capture = rig.capture()
    await capture.baseline()
    await capture.scan()
    taken = capture._engine._tools.intake.taken
    os.utime(path)
    await capture.scan()
    assert capture._engine._tools.intake.taken - taken <= 51
    await capture.close()


async def test_stores_through_a_mapping_that_is_still_open_are_seen_by_a_scan(rig):
    path = rig.write("mapped", bytes(4096))
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[0:1] = b"1"
        capture = rig.capture()
        await capture.baseline()
        before = path.stat()
        memory[0:1] = b"2"
        assert marks.mark(path.stat()) == marks.mark(before)
        changes = await capture.scan()
        assert rig.memory.get(only(changes, "mapped").after.sha256)[:1] == b"2"
        assert rig.bytes_before(changes, "mapped")[:1] == b"1"
        await capture.close()


async def test_a_scanning_process_that_dies_costs_nothing_but_time(rig):
    capture = rig.capture(crew_from=0)
    await capture.baseline()
    await capture.after()
    for mate in capture._engine.senses.scanner._crew._mates:
        os.kill(mate._process.pid, signal.SIGKILL)
        mate._process.wait()
    rig.write("0/0", b"changed")
    changes = await capture.after()
    assert whats(changes) == {"0/0": "content"}
    assert [note for note in changes.notes if note.startswith("crew.lost")]
    rig.write("0/0", b"again")
    changes = await capture.after()
    assert (whats(changes), changes.notes) == ({"0/0": "content"}, [])
    await capture.close()


async def test_the_processes_together_see_each_folder_once(rig):
    capture = rig.capture()
    await capture.baseline()
    tree = capture._engine.tree
    steps = list(tree.steps())
    parts = crew.cut(steps, 3)
    looked = [step.number for part in parts for step in part if step.look]
    assert looked == [step.number for _, step in steps]
    assert len(parts) == 3
    assert [step.look for step in parts[1][:1]] == [False]
    root = os.open(rig.root, os.O_RDONLY)
    mates = Crew(root)
    try:
        for number in range(3):
            rig.write(f"{number}/{number}", b"changed")
            mates.begin(tree)
            assert sorted(mates.finish()) == sorted(crew.scan_here(root, tree)[1])
    finally:
        mates.close()
        os.close(root)
    await capture.close()


async def test_where_no_process_can_be_started_the_scan_is_made_here(rig, monkeypatch):
    capture = rig.capture(crew_from=0)
    await capture.baseline()
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    rig.write("0/0", b"changed")
    changes = await capture.after()
    assert whats(changes) == {"0/0": "content"}
    assert [note for note in changes.notes if note.startswith("crew.lost")]
    await capture.close()


async def test_what_a_scan_found_that_was_given_up_is_not_taken_for_the_next_one(rig, monkeypatch):
    def fail(path):
        raise OSError(errno.EMFILE, "too many")

    capture = rig.capture(crew_from=0)
    await capture.baseline()
    await capture.after()
    with monkeypatch.context() as broken:
        broken.setattr(os, "listdir", fail)
        with pytest.raises(TakebackError):
            await capture.after()
    rig.write("0/0", b"changed")
    assert whats(await capture.after()) == {"0/0": "content"}
    await capture.close()


async def test_a_look_that_is_given_up_on_is_finished_before_the_next(rig):
    capture = rig.capture()
    await capture.baseline()
    rig.write("0/0", b"changed")
    put = rig.memory.put

    def slow(data):
        asked.set()
        given_up.wait(10)
        return put(data)

    asked, given_up = threading.Event(), threading.Event()
    rig.memory.put = slow
    async with anyio.create_task_group() as group:
        group.start_soon(capture.after)
        await anyio.to_thread.run_sync(asked.wait)
        group.cancel_scope.cancel()
        given_up.set()
    rig.memory.put = put
    # Nobody waited for what it saw, so the next look tells it, as if the two had been one.
    rig.write("0/0", b"again")
    changes = await capture.after()
    assert whats(changes) == {"0/0": "content"}
    assert rig.bytes_before(changes, "0/0") == b"0"
    assert rig.memory.get(only(changes, "0/0").after.sha256) == b"again"
    await capture.close()
