"""The disk is away: nothing that was done there is taken for undone, deleted, or never done."""

import os
import subprocess

import pytest

from takeback.context import Scope
from takeback.errors import TakebackError
from takeback.kernel import Kernel
from takeback_acts.files import ancestry
from takeback_acts.files.module import FilesModule
from takeback_core.undo.module import UndoModule
from tests.files import test_crash as crash

pytestmark = pytest.mark.anyio

ACTS = {
    "write": ["files.write", {"path": "d/x", "content": "new\n"}],
    "create": ["files.write", {"path": "d/e/n", "content": "new\n"}],
    "delete": ["files.delete", {"path": "d/e", "recursive": True}],
    "move over": ["files.move", {"path": "d/x", "to": "d/e/y", "overwrite": True}],
}


def _unplug(root):
    os.rename(root, root.with_name("unplugged"))
    root.mkdir()


def _plug_in(root):
    root.rmdir()
    os.rename(root.with_name("unplugged"), root)


async def _start(base):
    """What a start says: the acts with their states, and how many scripts wait."""
    async with Kernel(base / "home", settings={}, modules=[UndoModule, FilesModule]) as kernel:
        person = kernel.enter("cli:person")
        acts = [(act.tool, act.state) for act in (await person.call("undo.list")).acts]
        waiting = await kernel.store.read(
            lambda db: db.execute("SELECT count(*) FROM files_running").fetchone()[0]
        )
        checks = (await person.call("kernel.doctor")).checks
    return acts, waiting, {check.name: check.ok for check in checks}["interrupted file acts"]


@pytest.mark.parametrize("name", ACTS)
async def test_what_a_crash_left_waits_until_its_disk_is_there(tmp_path, name, snapshot):
    bases = crash._bases(tmp_path)
    before = snapshot(bases[1] / "root", times=False)
    crashed = crash._crash(bases, ACTS[name])
    after = snapshot(bases[0] / "root", times=False)
    waited = 0
    for base in crashed:
        root = base / "root"
        _unplug(root)
        acts, waiting, well = await _start(base)
        assert well == (waiting == 0)
        assert all(state == "pending" for _, state in acts) or not waiting
        waited += waiting
        assert os.listdir(root) == []
        _plug_in(root)
        settled, waiting, well = await _start(base)
        now = snapshot(root, times=False)
        assert (waiting, well) == (0, True)
        assert crash._temporaries(root) == []
        assert now in (before, after)
        state = settled[0][1] if settled else "none"
        assert state in (("done",) if now == after else ("none", "abandoned")), (base, acts)
    assert waited >= 3


async def test_a_folder_that_was_swapped_for_a_link_keeps_a_crash_waiting(tmp_path, snapshot):
    bases = crash._bases(tmp_path)
    before = snapshot(bases[1] / "root", times=False)
    crashed = crash._crash(bases, ACTS["write"], places=["files.renamed", "files.cleared", "files.", "undo."])
    after = snapshot(bases[0] / "root", times=False)
    for base in crashed:
        os.rename(base / "root" / "d", base / "elsewhere")
        (base / "root" / "d").symlink_to(base / "elsewhere")
        await _start(base)
        (base / "root" / "d").unlink()
        os.rename(base / "elsewhere", base / "root" / "d")
        settled, waiting, _ = await _start(base)
        now = snapshot(base / "root", times=False)
        assert waiting == 0
        assert crash._temporaries(base / "root") == []
        assert (settled[0][1] if settled else "none") in (
            ("done",) if now == after else ("none", "abandoned")
        )
        assert now in (before, after)


async def test_a_folder_that_was_deleted_keeps_nothing_waiting(tmp_path):
    bases = crash._bases(tmp_path)
    for base in crash._crash(bases, ACTS["write"]):
        subprocess.run(["rm", "-r", str(base / "root" / "d")], check=True)
        _, waiting, well = await _start(base)
        assert (waiting, well) == (0, True)


async def test_a_crash_is_cleared_up_as_soon_as_its_disk_is_back(tmp_path):
    bases = crash._bases(tmp_path)
    base = crash._crash(bases, ACTS["write"])[-3]
    _unplug(base / "root")
    scope = Scope(roots=(str(base / "root"),))
    async with Kernel(base / "home", settings={}, modules=[UndoModule, FilesModule]) as kernel:
        agent = kernel.enter("mcp:agent:juno", session="s1", scope=scope)
        with pytest.raises(TakebackError) as error:
            await agent.call("files.write", path="d/x", content="again")
        assert (error.value.code, error.value.retryable) == ("files.unreachable", True)
        await agent.call("files.write", path="other", content="elsewhere")
        (base / "root" / "other").unlink()
        _plug_in(base / "root")
        await agent.call("files.write", path="d/x", content="again")
        assert await kernel.store.read(
            lambda db: db.execute("SELECT count(*) FROM files_running").fetchone()[0]
        ) in (0, 1)
    assert (base / "root" / "d" / "x").read_text() == "again"
    assert crash._temporaries(base / "root") == []


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("files.write", {"path": "d/n", "content": "new"}),
        ("files.write", {"path": "d/x", "content": "new"}),
        ("files.delete", {"path": "d/x"}),
        ("files.move", {"path": "d/x", "to": "d/z"}),
        ("files.make_dir", {"path": "d/f"}),
    ],
)
async def test_an_undo_waits_for_the_disk(bench, root, snapshot, tool, args):
    (root / "d").mkdir()
    (root / "d" / "x").write_text("x")
    before = snapshot(root, times=False)
    done = await bench.agent().call(tool, args)
    _unplug(root)
    for verb in ("undo.preview", "undo.run"):
        with pytest.raises(TakebackError) as error:
            await bench.person().call(verb, id=done.act)
        assert "can't be reached" in error.value.message
    assert os.listdir(root) == []
    assert [act.state for act in (await bench.person().call("undo.list")).acts if act.role == "act"] == [
        "done"
    ]
    _plug_in(root)
    await bench.undo(done.act)
    assert snapshot(root, times=False) == before


async def test_an_undo_of_a_command_waits_for_the_disk(bench, root):
    (root / "d").mkdir()
    agent = bench.agent()
    begun = await agent.call("files.begin_command", cwd=str(root), command=["make"])
    (root / "d" / "n").write_text("new")
    ended = await agent.call("files.end_command", window=begun.window)
    _unplug(root)
    with pytest.raises(TakebackError):
        await bench.undo(ended.act)
    _plug_in(root)
    await bench.undo(ended.act)
    assert os.listdir(root / "d") == []


async def test_a_folder_put_back_by_an_earlier_step_is_no_disk_that_is_away(bench, root, snapshot):
    before = snapshot(root, times=False)
    agent = bench.agent()
    await agent.call("files.make_dir", path="d/e", parents=True)
    await agent.call("files.write", path="d/e/x", content="x")
    await agent.call("files.delete", path="d", recursive=True)
    await bench.person().call("undo.rewind", session="s1")
    assert snapshot(root, times=False) == before


def test_a_disk_is_told_from_a_deletion_by_what_leads_there(tmp_path):
    place = os.fsencode(tmp_path / "disk" / "p" / "x")
    (tmp_path / "disk" / "p").mkdir(parents=True)
    known = ancestry.above([place])
    ancestry.require_there(place, known)

    def away(changed):
        with pytest.raises(TakebackError) as error:
            ancestry.require_there(place, {**known, **changed})
        return error.value.code

    disk, folder = "files:" + str(tmp_path / "disk"), "files:" + str(tmp_path / "disk" / "p")
    assert away({folder: "1:1"}) == "files.unreachable"
    own = known[folder].split(":")
    ancestry.require_there(place, {**known, folder: f"{own[0]}1:{own[1]}"})  # numbered anew
    ancestry.require_there(place, {**known, folder: f"{own[0]}:1"})  # made anew
    (tmp_path / "disk" / "p").rmdir()
    ancestry.require_there(place, known)
    assert away({disk: f"{own[0]}:1"}) == "files.unreachable"  # an empty folder in the disk's place
    assert away({disk: "1:" + known[disk].split(":")[1]}) == "files.unreachable"
    (tmp_path / "disk").rmdir()
    ancestry.require_there(place, known)
    assert away({disk: "1:1"}) == "files.unreachable"  # a disk was mounted there


async def test_what_led_to_a_path_is_known_after_a_restart_too(tmp_path, root):
    (root / "d").mkdir()
    place = tmp_path / "home"
    async with Kernel(place, settings={}, modules=[UndoModule, FilesModule]) as kernel:
        done = await kernel.enter("cli:person").call("files.write", path=str(root / "d" / "n"), content="n")
    _unplug(root)
    async with Kernel(place, settings={}, modules=[UndoModule, FilesModule]) as kernel:
        with pytest.raises(TakebackError):
            await kernel.enter("cli:person").call("undo.run", id=done.act)
        _plug_in(root)
        await kernel.enter("cli:person").call("undo.run", id=done.act)
    assert os.listdir(root / "d") == []


async def test_a_folder_made_anew_by_an_undo_is_the_one_that_counts_from_then_on(bench, root):
    (root / "d" / "e").mkdir(parents=True)
    agent = bench.agent()
    first = await agent.call("files.write", path="d/e/x", content="x")
    gone = await agent.call("files.delete", path="d", recursive=True)
    await bench.undo(gone.act)
    subprocess.run(["rm", "-r", str(root / "d" / "e")], check=True)
    await bench.undo(first.act)  # it is so already, whoever did it
    assert os.listdir(root / "d") == []
