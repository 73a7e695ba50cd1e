"""Folders nested deeper than a path may be long, or than there are files that may be open."""

import os
import subprocess

import pytest

from tests.files.test_commands import Running, sh

pytestmark = pytest.mark.anyio

DEPTH = 1_500


@pytest.fixture(autouse=True)
def cleared(root):
    """What no path reaches is removed by a program that walks down to it."""
    yield
    subprocess.run(["rm", "-rf", str(root)], check=True)


def chain(root, depth, name="d", data=b"deep"):
    """A folder in a folder in a folder, with a file in each hundredth and the last one."""
    here = os.open(root, os.O_RDONLY)
    for level in range(depth):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
        if level % 100 == 99 or level == depth - 1:
            file = os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here)
            os.write(file, data)
            os.close(file)
    os.close(here)


def depth(root, name="d"):
    """How deep the chain is, and how many files lie in it."""
    here, level, files = os.open(root, os.O_RDONLY), 0, 0
    while name in os.listdir(here):
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here, level = below, level + 1
        files += "file" in os.listdir(here)
    os.close(here)
    return level, files


async def test_what_was_deleted_comes_back_down_to_the_last_folder(bench, root):
    chain(root, DEPTH)
    before = depth(root)
    async with Running(bench.agent(), root) as running:
        sh(root, "rm -rf d; echo beside > beside")
    undone = await bench.undo(running.ended.act)
    assert depth(root) == before == (DEPTH, DEPTH // 100)
    assert not (root / "beside").exists()
    await bench.person().call("undo.redo", id=undone.act)
    assert os.listdir(root) == ["beside"]


async def test_what_was_made_goes_again(bench, root):
    async with Running(bench.agent(), root) as running:
        chain(root, DEPTH)
    await bench.undo(running.ended.act)
    assert os.listdir(root) == []


async def test_what_stays_at_the_bottom_keeps_all_above_it(bench, root):
    async with Running(bench.agent(), root) as running:
        chain(root, 300)
        inner = root.joinpath(*["d"] * 300)
        (inner / "node_modules").mkdir()
    await bench.undo(running.ended.act)
    assert depth(root) == (300, 0)
    assert inner.is_dir()


async def test_an_act_of_takebacks_own_reaches_as_deep(bench, root):
    chain(root, 300)
    before = depth(root)
    done = await bench.agent().call("files.delete", path="d", recursive=True)
    assert os.listdir(root) == []
    await bench.undo(done.act)
    assert depth(root) == before
    moved = await bench.agent().call("files.move", path="d", to="e")
    assert depth(root, "e")[0] == 1
    await bench.undo(moved.act)
    assert depth(root) == before
    made = await bench.agent().call("files.make_dir", path="/".join("x" * 300), parents=True)
    await bench.undo(made.act)
    assert sorted(os.listdir(root)) == ["d"]
