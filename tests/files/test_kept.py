"""What acts keep, until it is swept: limits, two agents, races, damage, and homes of earlier versions."""

import os
import re
import resource
import shutil
import signal
import sqlite3

import anyio
import pytest

from takeback.errors import TakebackError
from takeback.kernel import Kernel
from takeback_acts.files.module import FilesModule
from takeback_core.undo.module import UndoModule
from tests.files.conftest import Bench

pytestmark = pytest.mark.anyio

DAY = 86_400
MODULES = [UndoModule, FilesModule]


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def limited(home, root):
    """A kernel with some settings of [files]."""

    def make(**settings):
        return Kernel(home, settings={"files": settings}, modules=MODULES)

    return make


async def _code(call):
    with pytest.raises(TakebackError) as error:
        await call
    return error.value.code


def _files(root, *sizes):
    for number, size in enumerate(sizes):
        (root / f"f{number}").write_bytes(os.urandom(size))


def _module(kernel):
    return kernel.supervisor.life("files").module


async def _rows(kernel):
    return await kernel.store.read(lambda db: db.execute("SELECT count(*) FROM files_blob").fetchone()[0])


async def test_an_agent_at_its_limit_changes_nothing_more_and_flushes_nothing(limited, root, snapshot):
    _files(root, 60_000, 30_000, 50_000, 200_000)
    before = snapshot(root)
    async with limited(most_kept_agent=100_000) as kernel:
        bench = Bench(kernel, root)
        first = await bench.agent().call("files.delete", path="f0")
        await bench.agent().call("files.delete", path="f1")
        here = snapshot(root)
        for name in ("f2", "f3"):
            assert await _code(bench.agent().call("files.delete", path=name)) == "blobs.agent_full"
        assert snapshot(root) == here
        assert len((await bench.person().call("undo.list")).acts) == 2
        assert (await bench.person().call("files.gc", grace_hours=0)).deleted == 0
        # Another agent has room of its own, over whatever door, and the person has no such limit.
        assert await _code(kernel.enter("hook:agent:juno").call("files.delete", path=str(root / "f2")))
        await bench.agent("kim").call("files.delete", path="f2")
        await bench.person().call("files.delete", path=str(root / "f3"))
        await bench.undo(first.act)
        for who in ("juno", "kim"):
            await bench.person().call("undo.rewind", agent=who)
        await bench.undo((await bench.person().call("undo.list", state="done")).acts[-1].id)
    assert snapshot(root) == before


async def test_an_error_of_a_limit_says_how_much_room_there_is(limited, root):
    _files(root, 50_000, 60_000)
    async with limited(most_kept_agent=100_000) as kernel:
        agent = Bench(kernel, root).agent()
        await agent.call("files.delete", path="f0")
        with pytest.raises(TakebackError) as error:
            await agent.call("files.delete", path="f1")
    assert "agent:juno" in error.value.message
    assert error.value.data["limit"] == 100_000
    assert str(100_000 - error.value.data["used"]) in error.value.message
    assert error.value.hint


async def test_an_undo_works_though_every_limit_is_reached(limited, root, snapshot):
    (root / "a").write_bytes(os.urandom(90_000))
    before = snapshot(root)
    async with limited(most_kept=100_000) as kernel:
        bench = Bench(kernel, root)
        done = await bench.agent().call("files.write", path="a", content_base64="AAAA" * 40_000)
        assert await _code(bench.person().call("files.delete", path=str(root / "a"))) == "blobs.full"
        await bench.undo(done.act)
        assert snapshot(root) == before
        await bench.person().call("undo.redo", id=done.act)
        assert (root / "a").stat().st_size == 120_000
        await bench.undo(done.act)
    assert snapshot(root) == before


async def test_an_agent_at_its_limit_can_take_back_what_it_did(limited, root, snapshot):
    (root / "a").write_bytes(os.urandom(90_000))
    before = snapshot(root)
    async with limited(most_kept_agent=100_000) as kernel:
        agent = Bench(kernel, root).agent()
        done = await agent.call("files.write", path="a", content_base64="AAAA" * 40_000)
        assert await _code(agent.call("files.delete", path="a")) == "blobs.agent_full"
        await agent.call("undo.run", id=done.act)
    assert snapshot(root) == before


async def test_what_a_command_did_is_kept_beyond_the_limit_and_the_next_is_not_begun(limited, root, snapshot):
    _files(root, 40_000)
    before = snapshot(root, times=False)
    async with limited(most_kept_agent=50_000) as kernel:
        bench = Bench(kernel, root)
        agent = bench.agent()
        begun = await agent.call("files.begin_command", cwd=str(root), command=["x"])
        (root / "f0").unlink()
        (root / "new").write_bytes(os.urandom(300_000))
        ended = await agent.call("files.end_command", window=begun.window)
        assert ended.notes == []
        assert (
            await _code(agent.call("files.begin_command", cwd=str(root), command=["y"])) == "blobs.agent_full"
        )
        await bench.undo(ended.act)
    assert snapshot(root, times=False) == before


async def test_a_sweep_takes_nothing_that_is_being_kept_or_moved(bench, root, later, snapshot):
    """Two agents act, folders of many files come and go, and all the while it is swept and moved."""
    for number in range(6):
        (root / f"d{number}").mkdir()
        for inner in range(40):
            (root / f"d{number}" / f"{inner}").write_text(f"{number} {inner}")
    before = snapshot(root, times=False)
    later(10 * DAY)  # nothing is spared for being young
    enough = anyio.Event()

    async def sweep():
        while not enough.is_set():
            await bench.person().call("files.gc", grace_hours=0)
            await _module(bench.kernel)._blobs.landing.move()

    async def act(name, numbers):
        agent = bench.agent(name, session=name)
        for number in numbers:
            await agent.call("files.write", path=f"d{number}/0", content=f"new {name} {number}")
            done = await agent.call("files.delete", path=f"d{number}", recursive=True)
            await agent.call("undo.run", id=done.act)
            await agent.call("files.delete", path=f"d{number}", recursive=True)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sweep)
        async with anyio.create_task_group() as agents:
            agents.start_soon(act, "juno", range(3))
            agents.start_soon(act, "kim", range(3, 6))
        enough.set()
    for name in ("juno", "kim"):
        await bench.person().call("undo.rewind", session=name)
    assert snapshot(root, times=False) == before


async def test_what_is_landed_is_moved_at_the_next_start_and_can_be_taken_back(home, root, snapshot, limited):
    _files(root, 100, 100_000)
    before = snapshot(root)
    async with limited() as kernel:
        bench = Bench(kernel, root)
        for name in ("f0", "f1"):
            await bench.agent().call("files.delete", path=name)
        assert await _rows(kernel) > 0
    async with limited() as kernel:
        with anyio.fail_after(10):
            while await _rows(kernel):
                await anyio.lowlevel.checkpoint()
        await Bench(kernel, root).person().call("undo.rewind", session="s1")
    assert snapshot(root) == before


def _as_before_packs(home):
    """Makes of a home what an earlier version left: rows without owners, and large files by themselves."""
    data = home / "data"
    shutil.copytree(data / "packs" / "large", data / "blobs")
    shutil.rmtree(data / "packs")
    with sqlite3.connect(data / "takeback.db") as db:
        db.execute("ALTER TABLE files_blob DROP COLUMN owner")
        db.execute("DELETE FROM kernel_migration WHERE module = 'files' AND version > 3")
        for later in re.findall(r"CREATE TABLE (\w+)", "".join(FilesModule.migrations[4:])):
            db.execute(f"DROP TABLE {later}")
    db.close()


async def test_a_home_of_an_earlier_version_goes_on(home, root, snapshot, limited):
    _files(root, 100, 100_000, 200_000)
    before = snapshot(root)
    async with limited() as kernel:
        for name in ("f0", "f1", "f2"):
            await Bench(kernel, root).agent().call("files.delete", path=name)
    _as_before_packs(home)
    async with limited() as kernel:
        assert not (home / "data" / "blobs").exists()
        person = Bench(kernel, root).person()
        assert (await person.call("files.gc", {}, rehearsal_={})).kept == 3
        await person.call("undo.rewind", session="s1")
    assert snapshot(root) == before


async def test_a_move_on_a_full_disk_leaves_the_rows(bench, root):
    (root / "a").write_bytes(os.urandom(50_000))
    done = await bench.agent().call("files.delete", path="a")
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, old[1]))
    try:
        assert await _code(_module(bench.kernel)._blobs.landing.move()) == "blobs.no_space"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert await _rows(bench.kernel) == 1
    await bench.undo(done.act)
    assert (root / "a").stat().st_size == 50_000
    assert await _module(bench.kernel)._blobs.landing.move() > 0


async def _checked(kernel):
    return {check.name: check for check in await _module(kernel).checks()}["kept bytes"]


@pytest.mark.parametrize("where", ["*.pack", "large/*/*"])
async def test_damaged_bytes_are_told_by_the_check(bench, home, root, where):
    _files(root, 50_000, 100_000)
    for name in ("f0", "f1"):
        await bench.agent().call("files.delete", path=name)
    await _module(bench.kernel)._blobs.landing.move()
    assert (await _checked(bench.kernel)).ok
    (path,) = (home / "data" / "packs").glob(where)
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    found = await _checked(bench.kernel)
    assert (found.ok, found.detail) == (False, "1 blobs are damaged or gone")
    assert found.hint


async def test_compressed_bytes_have_the_same_names_and_come_back(limited, root, home, snapshot):
    for number in range(3):
        (root / f"f{number}").write_text(f"{number} the same words again and again\n" * 1000)
    before = snapshot(root)
    async with limited(compress=True) as kernel:
        bench = Bench(kernel, root)
        for number in range(3):
            await bench.agent().call("files.delete", path=f"f{number}")
        await _module(kernel)._blobs.landing.move()
        assert sum(path.stat().st_size for path in (home / "data" / "packs").glob("*.pack")) < 10_000
    async with limited() as kernel:
        await Bench(kernel, root).person().call("undo.rewind", session="s1")
    assert snapshot(root) == before
