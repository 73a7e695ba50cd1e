"""What may be the only copy of something is never deleted, and the plan says that it stays."""

import os

import pytest

from takeback_acts.files import births
from tests.files.test_commands import Running, sh, shown

pytestmark = pytest.mark.anyio


async def ran(bench, root, script):
    async with Running(bench.agent(), root) as running:
        sh(root, script)
    return running.ended


async def told(bench, act):
    """What the plan says of the paths that stay."""
    plan = (await bench.person().call("undo.preview", id=act)).plan
    return {effect.resource: effect.reason for effect in plan.steps[0].effects if effect.action == "skip"}


async def test_a_left_out_folder_that_was_moved_stays_where_it_is(bench, root):
    sh(root, "mkdir node_modules; echo 1 > node_modules/a; echo old > text")
    ended = await ran(bench, root, "mv node_modules nm2; echo new > text")
    assert "node_modules held" in (await told(bench, ended.act))[bench.uri("nm2")]
    assert any("nm2" in note for note in ended.notes)
    await bench.undo(ended.act)
    assert (root / "nm2" / "a").read_text() == "1\n"
    assert (root / "text").read_text() == "old\n"


@pytest.mark.parametrize(
    "script",
    [
        "cp -r node_modules nm2; rm -r node_modules",
        "mkdir nm2; cp node_modules/a nm2/a; rm -r node_modules",
        "tar cf nm2 node_modules; rm -r node_modules",
    ],
)
async def test_what_may_be_a_copy_of_a_folder_that_went_uncaptured_stays(bench, root, script):
    sh(root, "mkdir node_modules; echo 1 > node_modules/a; echo old > text")
    ended = await ran(bench, root, f"{script}; echo new > text")
    await bench.undo(ended.act)
    assert (root / "nm2").exists()
    assert (root / "text").read_text() == "old\n"


@pytest.mark.parametrize("script", ["mv node_modules/a a", "mkdir d; mv node_modules/a d", "mv ../mine a"])
async def test_what_came_from_where_nothing_is_captured_stays(bench, root, script):
    sh(root, "mkdir node_modules; echo 1 > node_modules/a; echo 1 > ../mine; echo old > text")
    _let_a_tick_pass(root.parent)
    ended = await ran(bench, root, f"{script}; echo new > text; echo new > made")
    await bench.undo(ended.act)
    assert "1\n" in [path.read_text() for path in (*root.glob("a"), *root.glob("d/a"))]
    assert (root / "text").read_text() == "old\n"
    assert not (root / "made").exists()


async def test_a_log_that_never_rested_and_was_moved_stays(bench, root, monkeypatch):
    (root / "text").write_text("old")
    unread = root / "log"
    unread.write_text("1")
    unread.chmod(0)
    _deny(monkeypatch, b"log")
    ended = await ran(bench, root, "mv log log2; echo new > text")
    await bench.undo(ended.act)
    assert (root / "log2").exists()
    assert (root / "text").read_text() == "old"


async def test_an_act_of_nothing_but_what_stays_is_final_and_says_why(bench, root):
    sh(root, "mkdir node_modules; echo 1 > node_modules/a")
    ended = await ran(bench, root, "mv node_modules nm2")
    act = await shown(bench, ended.act)
    assert (act.state, act.undoable) == ("final", False)
    assert any("nm2" in line for line in act.why)
    assert (root / "nm2" / "a").exists()


async def test_what_was_moved_within_the_folder_goes_back(bench, root, snapshot):
    sh(root, "mkdir -p d/e; echo 1 > a; echo 2 > d/e/b; ln a hard; ln -s a soft")
    before = snapshot(root)
    ended = await ran(bench, root, "mv a b; mv d d2; mv soft soft2; ln hard hard2")
    await bench.undo(ended.act)
    assert snapshot(root) == before


async def test_a_cache_that_went_keeps_nothing_back(bench, root):
    sh(root, "mkdir __pycache__; echo 1 > __pycache__/a")
    ended = await ran(bench, root, "rm -r __pycache__; mkdir d; echo new > d/made")
    await bench.undo(ended.act)
    assert os.listdir(root) == []


def _let_a_tick_pass(folder):
    """Until what is made is younger than what was made before; a few milliseconds, without sleeping."""
    before = births.now()
    while births.now() == before:
        os.listdir(folder)


def _deny(monkeypatch, name):
    """Lets nobody open a file, not even root, whom permissions do not stop."""
    opened = os.open

    def refuse(path, *args, **more):
        if path == name:
            raise PermissionError(13, "denied")
        return opened(path, *args, **more)

    monkeypatch.setattr(os, "open", refuse)
