"""A command that removes, moves or makes anew the very folder that is captured can be taken back."""

import os

import pytest

from takeback.errors import ConflictError
from takeback.kernel import Kernel
from takeback_acts.files.module import FilesModule
from takeback_core.undo.module import UndoModule
from tests.files.test_commands import Running, sh, shown

pytestmark = pytest.mark.anyio


@pytest.fixture
def filled(root):
    sh(root, "mkdir -p d/empty; echo 1 > a; echo 2 > d/b; chmod 700 a; ln -s a link")
    return root


@pytest.fixture
def tracked(filled):
    sh(filled, "git init -q -b main .; git add .; git commit -qm 1; echo 3 >> a")
    return filled


async def ran(bench, root, script):
    async with Running(bench.agent(), root) as running:
        sh(root.parent, script)
    return running.ended


@pytest.mark.parametrize("script", ["rm -rf root", "rm root/a; mv root moved", "rm -rf root; echo 1 > root"])
async def test_a_folder_that_went_comes_back(bench, filled, snapshot, script):
    before = snapshot(filled)
    ended = await ran(bench, filled, script)
    assert (await shown(bench, ended.act)).undoable
    if filled.is_file():
        filled.unlink()
        with pytest.raises(ConflictError):
            await bench.undo(ended.act)
        filled.write_text("1\n")
    await bench.undo(ended.act)
    assert snapshot(filled) == before


async def test_a_work_tree_that_went_comes_back(bench, tracked, snapshot):
    before = snapshot(tracked)
    ended = await ran(bench, tracked, "rm -rf root")
    await bench.undo(ended.act)
    assert snapshot(tracked) == before
    assert sh(tracked, "git fsck --strict; git status --porcelain") == " M a\n"


async def test_a_folder_that_was_moved_stays_there_and_the_plan_says_so(bench, filled, snapshot):
    before = snapshot(filled)
    ended = await ran(bench, filled, "mv root moved; echo later > moved/new")
    plan = (await bench.person().call("undo.preview", id=ended.act)).plan
    moved = bench.uri("").replace("/root", "/moved")
    assert [e.action for e in plan.steps[0].effects if e.resource.endswith("/moved")] == ["skip"], moved
    await bench.undo(ended.act)
    assert snapshot(filled) == before
    assert (filled.parent / "moved" / "new").exists()


@pytest.mark.parametrize("git", [False, True])
async def test_a_folder_that_was_made_anew_gets_its_own_content_back(bench, filled, snapshot, git):
    if git:
        sh(filled, "git init -q -b main .; git add .; git commit -qm 1")
    before = snapshot(filled)
    ended = await ran(
        bench,
        filled,
        "cp -a root copy; rm -rf root; mkdir root; cp copy/link root -P; echo new > root/a; echo n > root/n",
    )
    await bench.undo(ended.act)
    found = snapshot(filled)
    for path in (b"a", b"d", b"d/b", b"link", b"d/empty"):
        assert found[path][:3] == before[path][:3]
    assert b"n" not in found


async def test_what_the_person_put_into_a_folder_made_anew_stays(bench, filled):
    ended = await ran(bench, filled, "rm -rf root; mkdir root")
    (filled / "mine").write_text("mine")
    await bench.undo(ended.act)
    assert (filled / "mine").read_text() == "mine"
    assert (filled / "a").read_text() == "1\n"


async def test_a_folder_that_went_and_was_made_anew_by_somebody_is_a_conflict(bench, filled):
    ended = await ran(bench, filled, "rm -rf root")
    filled.mkdir()
    (filled / "mine").write_text("mine")
    with pytest.raises(ConflictError):
        await bench.undo(ended.act)
    assert os.listdir(filled) == ["mine"]


async def test_a_folder_that_goes_while_two_windows_are_open_is_told_to_both(bench, filled):
    async with Running(bench.agent(session="s1"), filled) as first:
        async with Running(bench.agent("kim", session="s2"), filled) as second:
            sh(filled.parent, "rm -rf root")
    assert first.ended.act is second.ended.act is None
    assert str(filled) in first.ended.coincident
    assert str(filled) in second.ended.coincident


async def test_a_folder_that_goes_while_takeback_is_down_comes_back(tmp_path, filled, snapshot):
    before = snapshot(filled)
    async with _kernel(tmp_path) as kernel:
        person = kernel.enter("cli:person")
        begun = await person.call(
            "files.begin_command", cwd=str(filled), command=["make"], process=os.getpid()
        )
    sh(filled.parent, "rm -rf root; mkdir root; echo new > root/a")
    async with _kernel(tmp_path) as kernel:
        person = kernel.enter("cli:person")
        ended = await person.call("files.end_command", window=begun.window)
        await person.call("undo.run", id=ended.act)
    assert snapshot(filled).keys() == before.keys()
    assert (filled / "a").read_text() == "1\n"


async def test_the_next_command_in_a_folder_made_anew_is_captured(bench, filled):
    await ran(bench, filled, "rm -rf root; mkdir root; echo new > root/a")
    ended = await ran(bench, filled, "rm root/a")
    assert ended.changed == 1
    await bench.undo(ended.act)
    assert (filled / "a").read_text() == "new\n"


def _kernel(tmp_path):
    return Kernel(tmp_path / "home", settings={}, modules=[UndoModule, FilesModule])
