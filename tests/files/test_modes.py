"""Modes and owners of what was there before: what a command did to them is taken back like all else."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from takeback.errors import ConflictError
from takeback.kernel import Kernel
from takeback_acts.files import attributes
from takeback_acts.files.module import FilesModule
from takeback_core.undo.module import UndoModule
from tests.files import test_crash as crash
from tests.files.test_commands import Running, sh, shown

pytestmark = pytest.mark.anyio

NOBODY = 65534


def mode(path):
    return oct(path.stat().st_mode & 0o7777)


def owner(path):
    found = path.lstat()
    return found.st_uid, found.st_gid


async def ran(bench, script, *, session="s1"):
    async with Running(bench.agent(session=session), bench.root, "sh", "-c", script) as running:
        sh(bench.root, script)
    return running.ended


@pytest.fixture
def tree(root):
    sh(root, "mkdir -p src/deep empty; printf 1 > src/one; printf 2 > src/deep/two; chmod 750 src/deep")
    return root


@pytest.mark.parametrize(
    "script",
    [
        "chmod -R 777 .",
        "chmod 700 src",
        "chmod 000 src empty",
        "chmod 1777 empty; chmod 2755 src",
        "rm src/one; chmod 500 src",
        "printf more >> src/one; printf new > src/new; chmod 000 src",
        "chmod 700 src; mv src gone",
        "chmod 700 src src/deep; rm -r src",
        "mv src/deep deep; chmod 700 src deep",
        "rm -r src; mkdir -m 700 src; printf x > src/x",
    ],
)
async def test_what_a_command_did_to_modes_comes_back_and_goes_again(bench, tree, snapshot, script):
    before, top = snapshot(tree, times=False), mode(tree)
    ended = await ran(bench, script)
    after = snapshot(tree, times=False)
    assert not [note for note in ended.notes if "not captured" in note]
    plan = (await bench.person().call("undo.preview", id=ended.act)).plan
    assert plan.counts == {"clean": 1}
    undone = await bench.undo(ended.act, digest=plan.digest)
    assert (snapshot(tree, times=False), mode(tree)) == (before, top)
    await bench.person().call("undo.redo", id=undone.act)
    assert snapshot(tree, times=False) == after
    await bench.undo(ended.act)
    assert (snapshot(tree, times=False), mode(tree)) == (before, top)


async def test_the_folder_of_the_command_itself_is_one_of_them(bench, tree):
    tree.chmod(0o755)
    ended = await ran(bench, "chmod 700 .")
    assert ended.changed == 1
    (item,) = (await shown(bench, ended.act)).touched
    assert item.resource == bench.uri() + "/."
    assert (item.before, item.after) == (
        f"dir:0755:{os.geteuid()}:{os.getegid()}",
        f"dir:0700:{os.geteuid()}:{os.getegid()}",
    )
    await bench.undo(ended.act)
    assert mode(tree) == "0o755"


async def test_a_preview_changes_nothing_and_names_each_folder(bench, tree):
    ended = await ran(bench, "chmod 700 src; chmod 711 empty")
    plan = (await bench.person().call("undo.preview", id=ended.act)).plan
    effects = [(one.resource, one.action, one.holds) for one in plan.steps[0].effects]
    assert sorted(effects) == [
        (bench.uri("empty") + "/.", "restore", None),
        (bench.uri("src") + "/.", "restore", None),
    ]
    assert (mode(tree / "src"), mode(tree / "empty")) == ("0o700", "0o711")


async def test_a_folder_that_is_taken_back_keeps_its_times(bench, tree, snapshot):
    before = snapshot(tree)
    ended = await ran(bench, "chmod 700 src src/deep")
    await bench.undo(ended.act)
    assert snapshot(tree) == before


async def test_what_others_did_in_a_folder_since_is_no_conflict(bench, tree):
    ended = await ran(bench, "chmod -R g+w .")
    other = bench.agent("kim", session="s2")
    await other.call("files.write", path="src/new", content="new")
    await other.call("files.delete", path="src/deep/two")
    (tree / "empty" / "mine").write_text("mine")
    plan = (await bench.person().call("undo.preview", id=ended.act)).plan
    assert {one.resource for one in plan.conflicts} == {bench.uri("src/deep/two")}
    only = [bench.uri("src") + "/.", bench.uri("empty")]
    await bench.person().call("undo.run", id=ended.act, only=only)
    assert (mode(tree / "src"), mode(tree / "empty")) == ("0o755", "0o755")
    assert (tree / "src" / "new").read_text() == "new"


async def test_a_mode_that_somebody_changed_since_is_a_conflict(bench, tree):
    ended = await ran(bench, "chmod 777 src empty")
    (tree / "src").chmod(0o711)
    with pytest.raises(ConflictError):
        await bench.undo(ended.act)
    assert (mode(tree / "src"), mode(tree / "empty")) == ("0o711", "0o777")
    done = await bench.person().call("undo.run", id=ended.act, skip_conflicts=True)
    assert [one.resource for one in done.plan.steps[0].stays] == [bench.uri("src") + "/."]
    assert (mode(tree / "src"), mode(tree / "empty")) == ("0o711", "0o755")
    forced = await bench.undo(ended.act, force=True)
    assert mode(tree / "src") == "0o755"
    await bench.person().call("undo.redo", id=forced.act)
    assert mode(tree / "src") == "0o711"


@pytest.mark.parametrize("script", ["rm -r src", "rm -r src; printf x > src", "mv src gone"])
async def test_a_folder_that_is_gone_since_is_a_conflict(bench, tree, script):
    ended = await ran(bench, "chmod 777 src")
    sh(tree, script)
    with pytest.raises(ConflictError):
        await bench.undo(ended.act)


async def test_a_mode_that_is_back_already_is_left_so(bench, tree):
    ended = await ran(bench, "chmod 777 src")
    (tree / "src").chmod(0o755)
    plan = (await bench.person().call("undo.preview", id=ended.act)).plan
    assert [(one.action, one.reason) for one in plan.steps[0].effects] == [("skip", "unchanged")]
    await bench.undo(ended.act)
    assert mode(tree / "src") == "0o755"


async def test_a_mode_saved_between_the_look_and_the_act_stays(bench, tree, monkeypatch):
    ended = await ran(bench, "chmod 777 src empty; printf 2 > src/one")
    give = attributes.give

    def late(spot, expected, want):
        if spot.path.endswith(b"src"):
            (tree / "src").chmod(0o711)
        give(spot, expected, want)

    monkeypatch.setattr(attributes, "give", late)
    with pytest.raises(ConflictError):
        await bench.undo(ended.act)
    assert (mode(tree / "src"), mode(tree / "empty")) == ("0o711", "0o777")
    assert (tree / "src" / "one").read_text() == "2"


async def test_a_rewind_over_several_of_them_and_other_acts(bench, tree, snapshot):
    before, top = snapshot(tree, times=False), mode(tree)
    agent = bench.agent()
    await ran(bench, "chmod 777 src src/deep .")
    await agent.call("files.write", path="src/one", content="changed")
    await ran(bench, "chmod 700 src; rm src/deep/two")
    await agent.call("files.move", path="src", to="moved")
    await ran(bench, "chmod 000 moved; chmod 555 empty .")
    await agent.call("files.make_dir", path="empty/new")
    await ran(bench, "chmod 700 empty/new; rm -r moved")
    after = snapshot(tree, times=False)
    asked = {"session": "s1"}
    plan = (await bench.person().call("undo.preview", asked)).plan
    assert plan.counts == {"clean": 7}
    undone = await bench.person().call("undo.rewind", **asked, digest=plan.digest)
    assert (snapshot(tree, times=False), mode(tree)) == (before, top)
    await bench.person().call("undo.redo", id=undone.act)
    assert snapshot(tree, times=False) == after


async def test_thousands_of_folders_are_one_act(bench, root, snapshot):
    for number in range(2100):
        (root / f"{number}").mkdir(mode=0o755)
    before = snapshot(root)
    ended = await ran(bench, "chmod -R 700 [0-9]*")
    assert ended.changed == 2100
    undone = await bench.undo(ended.act)
    assert snapshot(root) == before
    await bench.person().call("undo.redo", id=undone.act)
    assert mode(root / "2099") == "0o700"


async def test_what_takeback_itself_did_to_a_mode_meanwhile_is_none_of_a_commands(bench, tree):
    ended = await ran(bench, "chmod 777 src; chown 7:7 src/one" if os.geteuid() == 0 else "chmod 777 src")
    async with Running(bench.agent("kim", session="s2"), tree, "make") as running:
        await bench.undo(ended.act)
        (tree / "empty").chmod(0o700)
    assert (running.ended.changed, running.ended.coincident) == (1, [])


async def test_what_two_commands_may_have_done_is_for_the_person_to_choose(bench, tree):
    async with Running(bench.agent(), tree) as one, Running(bench.agent("kim", session="s2"), tree) as two:
        (tree / "src").chmod(0o700)
    assert one.ended.coincident == two.ended.coincident == [str(tree / "src")]
    (act,) = (await bench.person().call("undo.list")).acts
    await bench.undo(act.id)
    assert mode(tree / "src") == "0o755"


async def test_a_left_out_folder_itself_comes_back(bench, tree):
    sh(tree, "mkdir node_modules; printf x > node_modules/x")
    ended = await ran(bench, "chmod -R 700 node_modules")
    await bench.undo(ended.act)
    assert mode(tree / "node_modules") == "0o755"


async def test_what_is_known_of_a_path_names_the_change(bench, tree):
    ended = await ran(bench, "chmod 777 src")
    past = await bench.person().call("files.history", path=str(tree / "src"))
    assert [(one.act, one.before[:8], one.after[:8]) for one in past.acts] == [
        (ended.act, "dir:0755", "dir:0777")
    ]
    found = await bench.person().call("files.diff", path=str(tree / "src"), act=ended.act)
    assert (found.text, found.note) == ("", "only the mode of the folder, or the owner, changed")


# ---------------------------------------------------------------------- owners


def as_root(test):
    """A test of what root alone can do, so that there is none for anybody else."""
    return test if os.geteuid() == 0 else None


@as_root
@pytest.mark.parametrize(
    "script",
    [
        "chown 7:8 src/one",
        "chown -R 7:8 .",
        "chgrp 8 src",
        "chown 7:8 src/one; chmod 600 src/one; printf more >> src/one",
        "ln -s one src/link; chown -h 7:8 src/link",
        "chmod 700 src; chown 7:8 src; rm src/one",
        "chown 7 src/one; mv src/one one",
        "chmod 4755 src/one; chown 7 src/one",
    ],
)
async def test_an_owner_comes_back_and_goes_again(bench, tree, script):
    def everything():
        return {path.name: (owner(path), path.lstat().st_mode) for path in [tree, *tree.rglob("*")]}

    before = everything()
    ended = await ran(bench, script)
    after = everything()
    assert before != after
    assert not [note for note in ended.notes if "not captured" in note]
    undone = await bench.undo(ended.act)
    assert everything() == before
    await bench.person().call("undo.redo", id=undone.act)
    assert everything() == after


@as_root
async def test_a_file_that_is_given_back_is_the_same_file(bench, tree):
    inode, bits = (tree / "src" / "one").stat().st_ino, 0o4755
    (tree / "src" / "one").chmod(bits)
    ended = await ran(bench, "chown 7 src/one; chmod 4755 src/one")
    await bench.undo(ended.act)
    found = (tree / "src" / "one").stat()
    assert (found.st_ino, found.st_uid, found.st_mode & 0o7777) == (inode, 0, bits)


@as_root
async def test_an_owner_that_somebody_changed_since_is_a_conflict_and_content_is_none(bench, tree):
    ended = await ran(bench, "chown 7 src/one src/deep/two")
    (tree / "src" / "one").write_text("edited since")
    os.chown(tree / "src" / "deep" / "two", 9, -1)
    plan = (await bench.person().call("undo.preview", id=ended.act)).plan
    assert {one.resource for one in plan.conflicts} == {bench.uri("src/deep/two") + "/."}
    await bench.person().call("undo.run", id=ended.act, skip_conflicts=True)
    assert (owner(tree / "src" / "one")[0], owner(tree / "src" / "deep" / "two")[0]) == (0, 9)
    assert (tree / "src" / "one").read_text() == "edited since"
    await bench.undo(ended.act, force=True)
    assert owner(tree / "src" / "deep" / "two")[0] == 0


@as_root
async def test_each_goes_back_by_itself_where_somebody_changed_the_other(bench, tree):
    ended = await ran(bench, "chown 7 src")
    (tree / "src").chmod(0o711)
    plan = (await bench.person().call("undo.preview", id=ended.act)).plan
    assert plan.counts == {"merge": 1}
    await bench.undo(ended.act)
    assert (owner(tree / "src")[0], mode(tree / "src")) == (0, "0o711")


# ---------------------------------------------------------------------- without rights

UNPRIVILEGED = """
import asyncio, json, os, sys, tempfile
from pathlib import Path
from takeback.context import Scope
from takeback.kernel import Kernel
from takeback_acts.files.module import FilesModule
from takeback_core.undo.module import UndoModule
import subprocess

def seen(root):
    found = {}
    for path in [root, *sorted(root.rglob("*"))]:
        found[str(path.relative_to(root))] = path.lstat().st_mode & 0o7777, path.lstat().st_uid
    for path in sorted(root.rglob("*")):
        if path.is_file():
            found[str(path.relative_to(root))] += (path.read_text(),)
    return found

async def main(base, scripts):
    root = base / "root"
    subprocess.run(["sh", "-ec", scripts[0]], cwd=root, check=True)
    before = seen(root)
    async with Kernel(base / "home", settings={}, modules=[UndoModule, FilesModule]) as kernel:
        agent = kernel.enter("mcp:agent:juno", session="s1", scope=Scope(roots=(str(root),)))
        person = kernel.enter("cli:person", present=True)
        notes = []
        for script in scripts[1:]:
            opening = {"cwd": str(root), "command": ["sh"]}
            window = (await agent.call("files.begin_command", opening)).window
            subprocess.run(["sh", "-ec", script], cwd=root, check=True)
            notes += (await agent.call("files.end_command", {"window": window})).notes
        plan = (await person.call("undo.preview", session="s1")).plan
        undone = await person.call("undo.rewind", session="s1", digest=plan.digest)
        back = seen(root) == before
        await person.call("undo.redo", id=undone.act)
        await person.call("undo.rewind", session="s1")
        return json.dumps([back, seen(root) == before, plan.counts, notes])

if os.geteuid() == 0:
    # What is imported on the way may lie where nobody else can read it.
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "root").mkdir()
        asyncio.run(main(Path(scratch), ["mkdir d", "touch d/x; chmod 700 d"]))
    os.setgroups([])
    os.setegid(65534)
    os.seteuid(65534)
    run = subprocess.run

    def as_nobody():
        # Some shells take the rights back that the process has given up for now.
        os.seteuid(0)
        os.setgid(65534)
        os.setuid(65534)

    def as_root():
        os.seteuid(0)

    def become(words):
        return as_root if words[-1].startswith("chown") else as_nobody

    subprocess.run = lambda words, **more: run(words, **more, preexec_fn=become(words))
print(asyncio.run(main(Path(sys.argv[1]), json.loads(sys.argv[2]))))
"""


@pytest.fixture
def open_base():
    """A folder for a user who isn't root: the parents of pytest's own are shut to everybody else."""
    base = Path(tempfile.mkdtemp(prefix="takeback-test-"))
    (base / "root").mkdir()
    base.chmod(0o755)
    if os.geteuid() == 0:
        for path in (base, base / "root"):
            os.chown(path, NOBODY, NOBODY)
    yield base
    subprocess.run(["chmod", "-R", "u+rwX", base], check=False)
    shutil.rmtree(base)


def _unprivileged(base, *scripts):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", UNPRIVILEGED, base, json.dumps(scripts)]
    done = subprocess.run(words, capture_output=True, text=True, env=env, cwd=base, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


FIRST = "mkdir -p d/e; printf 1 > d/a; printf 2 > d/e/b; printf 3 > c; chmod 755 d d/e"


@pytest.mark.parametrize(
    "scripts",
    [
        ["chmod 000 d"],
        ["chmod 500 d d/e"],
        ["rm d/a; printf 9 > d/e/b; printf n > d/n; chmod 500 d d/e"],
        ["chmod 300 d/e; chmod 000 d"],
        ["rm d/a; printf 9 > d/e/b; printf n > d/n; chmod 000 d"],
        ["printf 9 > d/e/b; rm c; chmod 000 d/e d ."],
        ["printf 9 > d/a", "chmod 000 d"],
        ["rm -r d/e", "printf 9 > d/a; chmod 500 d", "chmod 000 d", "printf 8 > c; chmod 555 ."],
    ],
)
def test_a_folder_that_nobody_can_enter_or_write_in_comes_back_without_rights(open_base, scripts):
    back, again, counts, notes = _unprivileged(open_base, FIRST, *scripts)
    assert (back, again, counts, notes) == (True, True, {"clean": len(scripts)}, [])


@as_root
def test_an_owner_that_only_root_can_give_back_is_named_and_the_rest_comes_back(open_base):
    scripts = ["chown 7 d/a d/e; rm c", "printf 9 > d/e/b"]
    back, again, counts, notes = _unprivileged(
        open_base, FIRST + "; chmod 777 d/e; chmod 666 d/e/b", *scripts
    )
    left = [open_base / "root" / "d" / name for name in ("a", "e")]
    assert (back, again, counts) == (False, False, {"clean": 2})
    assert notes == [f"not captured: {path} (only root can give it back to its owner)" for path in left]
    assert [owner(path)[0] for path in left] == [7, 7]
    assert (open_base / "root" / "c").read_text() == "3"
    assert (open_base / "root" / "d" / "e" / "b").read_text() == "2"


# ---------------------------------------------------------------------- killed anywhere


@pytest.mark.parametrize(
    ("first", "script"),
    [
        ("", "chmod 700 d d/e; chmod 500 ."),
        ("", "printf new > d/x; rm d/e/y; chmod 500 d; chmod 000 d/e"),
        ("chmod 500 d/e d", "chmod 750 d d/e; printf new > d/x; rm d/e/y"),
    ],
)
async def test_an_undo_of_modes_killed_anywhere_is_whole_or_not_at_all(tmp_path, snapshot, first, script):
    bases = crash._bases(tmp_path)
    for base in bases:
        sh(base / "root", first)
    before, top = snapshot(bases[1] / "root", times=False), mode(bases[1] / "root")
    crashed = crash._crash(
        bases, ["undo.rewind", {"session": "s1"}], first=[["sh", script]], places=("files.",)
    )
    assert snapshot(bases[0] / "root", times=False) == before
    outcomes = set()
    for base in crashed:
        acts = await crash._settled(base)
        now = snapshot(base / "root", times=False), mode(base / "root")
        assert crash._temporaries(base / "root") == []
        (act,) = [one for one in acts if one.tool == "files.end_command"]
        assert act.state in ("done", "undone")
        assert (now == (before, top)) == (act.state == "undone"), base
        outcomes.add(act.state)
        async with Kernel(base / "home", settings={}, modules=[UndoModule, FilesModule]) as kernel:
            await kernel.enter("cli:person").call("undo.rewind", session="s1")
        assert snapshot(base / "root", times=False) == before
    assert outcomes == {"done", "undone"}
