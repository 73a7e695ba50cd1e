"""A part of an act on files: what is in no conflict comes back path by path, what somebody changed stays."""

import json
import os
import tempfile
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takeback.context import Scope
from takeback.errors import NotFoundError, RefusedError, TakebackError
from takeback.kernel import Kernel
from takeback_acts.files.module import FilesModule
from takeback_core.undo.module import UndoModule
from tests.files.test_commands import Running, sh

pytestmark = pytest.mark.anyio


async def ran(bench, root, script, who=None):
    """The act of a command that has run."""
    async with Running(who or bench.agent(), root) as running:
        sh(root, script)
    return running.ended.act


async def skipping(bench, act):
    return await bench.undo(act, skip_conflicts=True)


def stays(outcome):
    return sorted({stay.resource.rstrip("/").rpartition("/")[2] for stay in outcome.plan.steps[0].stays})


def read(root):
    return {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()}


async def test_one_changed_file_holds_none_of_the_others(bench, root, snapshot):
    for name in "abc":
        (root / name).write_bytes(b"\0" + name.encode())
    before = snapshot(root)
    act = await ran(bench, root, "for f in a b c; do printf '\\001' > $f; done")
    (root / "b").write_bytes(b"\0mine")
    outcome = await skipping(bench, act)
    assert stays(outcome) == ["b"]
    assert "changed since" in outcome.plan.steps[0].stays[0].reason
    assert read(root) == {"a": b"\0a", "b": b"\0mine", "c": b"\0c"}
    (root / "b").write_bytes(b"\1")
    rest = await bench.undo(act)
    assert [effect.resource for effect in rest.plan.steps[0].effects] == [bench.uri("b")]
    assert snapshot(root) == before
    for undo in (rest, outcome):
        await bench.person().call("undo.redo", id=undo.act)
    assert read(root) == dict.fromkeys("abc", b"\1")


async def test_a_file_added_to_a_new_folder_holds_only_the_folder(bench, root):
    (root / "gone").write_text("old")
    act = await ran(bench, root, "mkdir new; touch new/a beside; rm gone")
    (root / "new" / "mine").write_text("mine")
    outcome = await skipping(bench, act)
    assert stays(outcome) == ["new"]
    assert sorted(os.listdir(root)) == ["gone", "new"]
    assert sorted(os.listdir(root / "new")) == ["a", "mine"]
    (root / "new" / "mine").unlink()
    await bench.undo(act)
    assert os.listdir(root) == ["gone"]


async def test_what_was_added_to_the_index_since_stays_in_it(bench, root):
    sh(root, "git init -q .; touch f; git add f; git commit -qm first; echo u > u; echo v > v")
    act = await ran(bench, root, "git add u; echo new > f")
    sh(root, "git add v")
    outcome = await skipping(bench, act)
    assert "index" in stays(outcome)
    assert (root / "f").read_text() == ""
    assert sh(root, "git diff --cached --name-only").split() == ["u", "v"]
    sh(root, "git fsck --strict")


async def test_gits_own_files_of_a_repository_go_together(bench, root):
    sh(root, "git init -q -b main .; echo 1 > f; git add f; git commit -qm first")
    act = await ran(
        bench, root, "git checkout -qb other; echo 2 > f; git commit -qam second; echo x > beside"
    )
    sh(root, "echo v > v; git add v")
    outcome = await skipping(bench, act)
    assert {"HEAD", "index", "other"} <= set(stays(outcome))
    assert not (root / "beside").exists()
    assert sh(root, "git branch --show-current").strip() == "other"
    assert (root / "f").read_text() == "1\n"
    sh(root, "git fsck --strict")
    alone = (await bench.person().call("undo.preview", id=act, only=[bench.uri(".git/HEAD")])).plan
    assert "goes together" in alone.conflicts[0].reason


async def test_both_ends_of_a_move_go_together(bench, root):
    (root / "a").write_text("old")
    act = (await bench.agent().call("files.move", path="a", to="b")).act
    for name in "ab":
        plan = (await bench.person().call("undo.preview", id=act, only=[bench.uri(name)])).plan
        assert plan.steps[0].status == "conflict"
        assert "goes together" in plan.conflicts[0].reason
    (root / "a").write_text("mine")
    outcome = await skipping(bench, act)
    assert outcome.results == []
    (root / "a").unlink()
    await bench.undo(act, only=[bench.uri("a"), bench.uri("b")])
    assert read(root) == {"a": b"old"}


async def test_a_folder_names_what_lies_in_it_and_a_part_of_a_whole_folder_is_none(bench, root):
    (root / "d").mkdir()
    for name in ("d/x", "d/y", "e"):
        (root / name).write_text("old")
    act = await ran(bench, root, "for f in d/x d/y e; do echo new > $f; done; mkdir whole; touch whole/x")
    await bench.undo(act, only=[bench.uri("d")])
    assert [(root / name).read_text() for name in ("d/x", "d/y", "e")] == ["old", "old", "new\n"]
    with pytest.raises(NotFoundError) as refused:
        await bench.undo(act, only=[bench.uri("whole/x")])
    assert refused.value.code == "undo.no_part"
    await bench.undo(act, only=[bench.uri("whole")])
    assert sorted(os.listdir(root)) == ["d", "e"]


async def test_an_agent_takes_back_parts_within_its_roots_of_today(bench, root):
    (root / "d").mkdir()
    act = await ran(bench, root, "touch d/a b")
    inner = bench.agent(roots=[root / "d"])
    with pytest.raises(RefusedError):
        await inner.call("undo.run", id=act)
    await inner.call("undo.run", id=act, only=[bench.uri("d")])
    assert (os.listdir(root / "d"), sorted(os.listdir(root))) == ([], ["b", "d"])


async def test_a_part_is_confined_to_itself(bench, root):
    (root / "a").write_text("a")
    act = await ran(bench, root, "rm a; touch b")
    row = await bench.kernel.store.read(
        lambda db: db.execute("SELECT inverse_input FROM undo_acted WHERE id = ?", (act,)).fetchone()[0]
    )
    given = {**json.loads(row), "only": [bench.uri("b")]}
    module = bench.kernel.enter("module:undo")
    with pytest.raises(RefusedError) as refused:
        await module.call("files.restore", given, as_="module:undo", confined_to_={bench.uri("a"): "absent"})
    assert refused.value.code == "scope.confined"
    assert os.listdir(root) == ["b"]


async def test_one_path_of_thousands(bench, root):
    names = [f"{number:04}" for number in range(2500)]
    for name in names:
        (root / name).write_text("old")
    act = await ran(bench, root, "for f in *; do printf new > $f; done")
    (root / "0007").write_bytes(b"\0mine")
    await bench.undo(act, only=[bench.uri("0003")])
    assert [(root / name).read_text() for name in names[2:5]] == ["new", "old", "new"]
    outcome = await skipping(bench, act)
    assert stays(outcome) == ["0007"]
    assert {(root / name).read_text() for name in names if name != "0007"} == {"old"}


async def test_a_lost_pre_image_holds_only_its_own_path(bench, root):
    (root / "a").write_bytes(b"x" * 200_000)
    (root / "b").write_text("second")
    act = await ran(bench, root, "rm a b")
    for path in (bench.kernel.home.data / "packs" / "large").rglob("*"):
        if path.is_file():
            path.unlink()
    outcome = await skipping(bench, act)
    assert [(stay.why, stay.reason) for stay in outcome.plan.steps[0].stays] == [("gone", "missing-blob")]
    assert read(root) == {"b": b"second"}


async def test_what_both_may_have_changed_is_taken_back_by_choice_path_by_path(bench, root):
    for name in "ab":
        (root / name).write_text("old")
    first, second = bench.agent(session="s1"), bench.agent("kim", session="s2")
    async with Running(first, root) as one, Running(second, root):
        sh(root, "for f in a b; do echo new > $f; done")
    assert one.ended.act is None
    acts = (await bench.person().call("undo.list")).acts
    found = {act.input["coincident"][0]: act for act in acts}
    assert sorted(found) == [str(root / name) for name in "ab"]
    await bench.undo(found[str(root / "a")].id, only=[bench.uri("a")])
    assert read(root) == {"a": b"old", "b": b"new\n"}
    for who in (first, second):
        with pytest.raises(NotFoundError):
            await who.call("undo.run", id=found[str(root / "b")].id)


# ------------------------------------------------------------------ any order

NAMES = ["a", "b", "d", "e", "f"]
COMMANDS = {
    "a": "printf agent > a",
    "b": "rm b",
    "d": "rm -r d",
    "e": "mkdir e; printf x > e/x",
    "f": "rm f; mkdir f; printf y > f/y",
}


def _told(story):
    async def run(base):
        root = base / "root"
        (root / "d" / "in").mkdir(parents=True)
        (root / "a").write_bytes(b"\0first")
        (root / "b").write_text("b")
        (root / "d" / "in" / "x").write_text("x")
        (root / "f").symlink_to("a")
        async with Kernel(base / "home", settings={}, modules=[UndoModule, FilesModule]) as kernel:
            scope = Scope(roots=(str(root),))
            await story(kernel, kernel.enter("mcp:agent:juno", session="s", scope=scope), root)

    with tempfile.TemporaryDirectory() as folder:
        anyio.run(run, Path(folder).resolve())


async def _commanded(agent, root, names):
    async with Running(agent, root) as running:
        sh(root, "\n".join(COMMANDS[name] for name in names))
    return running.ended.act


def _uri(root, name):
    return f"files:{root / name}"


STEPS = st.lists(st.sampled_from([*NAMES, "redo", "skip"]), max_size=6)


@settings(max_examples=40)
@given(names=st.lists(st.sampled_from(NAMES), min_size=1, unique=True), steps=STEPS)
def test_parts_and_the_rest_in_any_order_end_in_the_first_state(names, steps):
    from tests.files.conftest import _snapshot

    async def story(kernel, agent, root):
        before = _snapshot(root, times=False)
        act = await _commanded(agent, root, names)
        after = _snapshot(root, times=False)
        person = kernel.enter("cli:person")
        undos: list[str | None] = []
        for step in steps:
            if step == "redo" and undos:
                await person.call("undo.redo", id=undos.pop())
            elif step == "skip":
                undos.append((await person.call("undo.run", id=act, skip_conflicts=True)).act)
            elif step in names:
                undos.append((await person.call("undo.run", id=act, only=[_uri(root, step)])).act)
            undos = [undo for undo in undos if undo is not None]
        rest = await person.call("undo.run", id=act)
        assert _snapshot(root, times=False) == before
        assert (await person.call("undo.show", id=act)).act.state == "undone"
        for undo in [rest.act, *reversed(undos)]:
            if undo is not None:
                await person.call("undo.redo", id=undo)
        assert _snapshot(root, times=False) == after

    _told(story)


def _edit(root, name):
    """The person's own words at a path; what they stand in, when that could be."""
    path = root / name
    if path.is_dir() and not path.is_symlink():
        path = path / "mine"
    if path.is_symlink() or not path.parent.is_dir():
        return None
    path.write_bytes(b"\0mine")
    return path


@settings(max_examples=40)
@given(
    names=st.lists(st.sampled_from(NAMES), min_size=1, unique=True),
    edits=st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True),
    first=st.sampled_from(NAMES),
)
def test_what_the_person_wrote_stays_and_is_named_and_all_else_comes_back(names, edits, first):
    from tests.files.conftest import _snapshot

    async def story(kernel, agent, root):
        before = _snapshot(root, times=False)
        act = await _commanded(agent, root, names)
        person = kernel.enter("cli:person")
        if first in names:
            await person.call("undo.run", id=act, only=[_uri(root, first)])
        written = {name: path for name in edits if (path := _edit(root, name))}
        plan = (await person.call("undo.preview", id=act, skip_conflicts=True)).plan
        outcome = await person.call("undo.run", id=act, skip_conflicts=True, digest=plan.digest)
        assert outcome.plan == plan
        assert {path.read_bytes() for path in written.values()} <= {b"\0mine"}
        told = {each.resource.rstrip("/") for each in plan.conflicts}
        standing = {name for name in names if name != first}
        assert {_uri(root, name) for name in written.keys() & standing} == told
        now = _snapshot(root, times=False)
        for name in set(NAMES) - written.keys():
            own = os.fsencode(name)
            assert {p: s for p, s in now.items() if p.split(b"/")[0] == own} == {
                p: s for p, s in before.items() if p.split(b"/")[0] == own
            }

    _told(story)


async def test_an_undo_that_is_refused_says_so_of_each_path(bench, root):
    act = await ran(bench, root, "touch a b")
    (root / "a").write_text("mine")
    (root / "b").write_text("mine")
    with pytest.raises(TakebackError) as refused:
        await bench.undo(act)
    plan = refused.value.data["plan"]
    assert sorted(each["resource"] for each in plan["conflicts"]) == [bench.uri("a"), bench.uri("b")]
    assert (await skipping(bench, act)).results == []


async def test_force_overwrites_one_path_and_merges_another(bench, root):
    lines = [f"line {number}\n" for number in range(9)]
    (root / "text").write_text("".join(lines))
    (root / "binary").write_bytes(b"\0old")
    act = await ran(bench, root, "sed -i.bak 's/line 1/agent/' text; rm text.bak; printf '\\001' > binary")
    (root / "text").write_text((root / "text").read_text().replace("line 7", "mine"))
    (root / "binary").write_bytes(b"\0mine")
    theirs = read(root)
    outcome = await bench.undo(act, force=True)
    assert (outcome.plan.steps[0].status, outcome.plan.steps[0].forced) == ("merge", True)
    assert (root / "text").read_text() == "".join(lines).replace("line 7", "mine")
    assert (root / "binary").read_bytes() == b"\0old"
    await bench.undo(outcome.act)
    assert read(root) == theirs
