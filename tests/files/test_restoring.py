"""Taking acts back: everything returns, nobody's later work is lost, and the preview said so."""

import base64
import hashlib
import os
import resource
import stat

import pytest

from takeback import faults
from takeback.errors import TakebackError

pytestmark = pytest.mark.anyio


async def _refused(call):
    with pytest.raises(TakebackError) as error:
        await call
    return error.value


@pytest.fixture
def tree(root):
    """A folder with one of everything that must come back."""
    top = root / "d"
    (top / "sub" / "empty").mkdir(parents=True)
    (top / "text").write_text("text\n")
    (top / "binary").write_bytes(bytes(range(256)) * 400)
    (top / "large").write_bytes(os.urandom(200_000))
    (top / "sub" / "run").write_text("#!/bin/sh\n")
    (top / "sub" / "run").chmod(0o755)
    (top / "secret").write_text("s")
    (top / "secret").chmod(0o400)
    (top / "link").symlink_to("text")
    (top / "broken").symlink_to("/nowhere/at all")
    (top / "none").write_bytes(b"")
    (top / os.fsdecode(b"n\xffme\n")).write_text("odd name")
    (top / "shut").mkdir(mode=0o555)
    for number, path in enumerate(sorted(top.rglob("*"))):
        os.utime(path, ns=(1, 1_600_000_000_123_456_789 + number), follow_symlinks=False)
    os.utime(top, ns=(1, 1_500_000_000_000_000_001))
    return top


async def test_a_deleted_folder_comes_back_with_all_there_is_to_it(bench, root, tree, snapshot):
    before = snapshot(root)
    done = await bench.agent().call("files.delete", path="d", recursive=True)
    assert os.listdir(root) == []
    await bench.undo(done.act)
    assert snapshot(root) == before


async def test_a_deleted_folder_goes_again_with_redo_and_comes_again_with_undo(bench, root, tree, snapshot):
    before = snapshot(root)
    done = await bench.agent().call("files.delete", path="d", recursive=True)
    person = bench.person()
    for _ in range(2):
        await bench.undo(done.act)
        assert snapshot(root) == before
        await person.call("undo.redo", id=done.act)
        assert os.listdir(root) == []
    await bench.undo(done.act)
    assert snapshot(root) == before


ACTS = [
    ("files.write", {"path": "a", "content": "new"}),
    ("files.write", {"path": "new", "content": "new"}),
    ("files.edit", {"path": "a", "old": "old", "new": "new"}),
    ("files.move", {"path": "a", "to": "b"}),
    ("files.move", {"path": "a", "to": "sub/b"}),
    ("files.move", {"path": "a", "to": "other", "overwrite": True}),
    ("files.move", {"path": "sub", "to": "bus"}),
    ("files.move", {"path": "sub", "to": "other", "overwrite": True}),
    ("files.move", {"path": "a", "to": "sub", "overwrite": True}),
    ("files.move", {"path": "way", "to": "path"}),
    ("files.delete", {"path": "a"}),
    ("files.delete", {"path": "way"}),
    ("files.delete", {"path": "empty"}),
    ("files.delete", {"path": "sub", "recursive": True}),
    ("files.make_dir", {"path": "made"}),
    ("files.make_dir", {"path": "made/in/there", "parents": True}),
]


@pytest.mark.parametrize(("tool", "args"), ACTS)
async def test_every_act_is_taken_back_and_done_again_exactly(bench, root, tool, args, snapshot):
    (root / "a").write_text("old\n")
    (root / "a").chmod(0o750)
    (root / "other").write_bytes(b"\0other")
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "sub" / "deep" / "x").write_text("x")
    (root / "empty").mkdir()
    (root / "way").symlink_to("a")
    os.utime(root / "a", ns=(1, 1_600_000_000_123_456_789))
    os.utime(root / "sub" / "deep", ns=(1, 1_600_000_000_000_000_001))
    # The times of folders in which names came and went can't be kept apart from the effect itself.
    before, exact = snapshot(root, times=False), (root / "a").stat().st_mtime_ns
    done = await bench.agent().call(tool, args)
    after = snapshot(root, times=False)
    assert after != before
    outcome = await bench.undo(done.act)
    assert [step.status for step in outcome.plan.steps] == ["clean"]
    assert snapshot(root, times=False) == before
    assert (root / "a").stat().st_mtime_ns == exact
    again = await bench.person().call("undo.redo", id=done.act)
    assert again.results[0].state == "done"
    assert snapshot(root, times=False) == after
    await bench.undo(done.act)
    assert snapshot(root, times=False) == before


async def test_a_whole_session_of_mixed_acts_is_rewound(bench, root, tree, snapshot):
    before = snapshot(root, times=False)
    agent = bench.agent()
    await agent.call("files.make_dir", path="n/m", parents=True)
    await agent.call("files.write", path="n/m/x", content="x")
    await agent.call("files.move", path="d/sub", to="n/sub")
    await agent.call("files.write", path="n/sub/run", content="changed")
    await agent.call("files.move", path="n", to="k")
    await agent.call("files.edit", path="d/text", old="text", new="TEXT")
    await agent.call("files.delete", path="d", recursive=True)
    await agent.call("files.make_dir", path="d")
    await agent.call("files.write", path="d/y", content="y")
    await agent.call("files.delete", path="d", recursive=True)
    await agent.call("files.delete", path="k", recursive=True)
    assert os.listdir(root) == []
    person = bench.person()
    plan = (await person.call("undo.preview", session="s1")).plan
    assert {step.status for step in plan.steps} == {"clean"}
    done = await person.call("undo.rewind", session="s1", digest=plan.digest)
    assert snapshot(root, times=False) == before
    await person.call("undo.redo", id=done.act)
    assert os.listdir(root) == []


async def test_a_rewind_that_stops_in_the_middle_of_a_folder_s_story(bench, root, snapshot):
    agent = bench.agent()
    await agent.call("files.make_dir", path="d")
    await agent.call("files.write", path="d/x", content="x")
    before = snapshot(root, times=False)
    later = bench.agent(turn="t2")
    await later.call("files.write", path="d/y", content="y")
    await later.call("files.move", path="d", to="e")
    await later.call("files.write", path="e/z", content="z")
    await bench.person().call("undo.rewind", session="s1", turn="t2")
    assert snapshot(root, times=False) == before


async def test_lines_of_others_survive_an_undo(bench, root):
    lines = [f"line {number}\n" for number in range(20)]
    (root / "a").write_text("".join(lines))
    done = await bench.agent().call("files.edit", path="a", old="line 3\n", new="agent\n")
    (root / "a").write_text((root / "a").read_text().replace("line 15\n", "person\n"))
    plan = (await bench.person().call("undo.preview", id=done.act)).plan
    assert plan.steps[0].status == "merge"
    await bench.undo(done.act)
    assert (root / "a").read_text() == "".join(lines).replace("line 15\n", "person\n")
    await bench.person().call("undo.redo", id=done.act)
    assert (root / "a").read_text() == "".join(lines).replace("line 15\n", "person\n").replace(
        "line 3\n", "agent\n"
    )


async def test_lines_of_others_survive_in_a_long_text_too(bench, root):
    lines = [f"line {number} with some words to make it long\n" for number in range(8000)]
    (root / "a").write_text("".join(lines))
    agent = bench.agent()
    done = await agent.call("files.edit", path="a", old=lines[10], new="agent\n")
    (root / "a").write_text((root / "a").read_text().replace(lines[7000], "person\n"))
    await bench.undo(done.act)
    lines[7000] = "person\n"
    assert (root / "a").read_text() == "".join(lines)


async def test_two_edits_of_a_session_are_rewound_around_a_person_s_line(bench, root):
    lines = [f"line {number}\n" for number in range(30)]
    (root / "a").write_text("".join(lines))
    agent = bench.agent()
    await agent.call("files.edit", path="a", old="line 3\n", new="first\n")
    await agent.call("files.edit", path="a", old="line 25\n", new="second\n")
    (root / "a").write_text((root / "a").read_text().replace("line 15\n", "person\n"))
    plan = (await bench.person().call("undo.preview", session="s1")).plan
    assert [step.status for step in plan.steps] == ["merge", "merge"]
    await bench.person().call("undo.rewind", session="s1", digest=plan.digest)
    assert (root / "a").read_text() == "".join(lines).replace("line 15\n", "person\n")


async def test_a_person_s_text_that_was_moved_afterwards_makes_a_conflict_and_stays(bench, root):
    (root / "a").write_bytes(b"\0old")
    agent = bench.agent()
    await agent.call("files.write", path="a", content="agent")
    (root / "a").write_text("person")
    await agent.call("files.move", path="a", to="b")
    plan = (await bench.person().call("undo.preview", session="s1")).plan
    assert [step.status for step in plan.steps] == ["clean", "conflict"]
    assert (await _refused(bench.person().call("undo.rewind", session="s1"))).kind == "conflict"
    assert (root / "b").read_text() == "person"


async def test_a_mode_that_the_person_set_since_stays(bench, root):
    (root / "a").write_text("old")
    (root / "a").chmod(0o644)
    done = await bench.agent().call("files.write", path="a", content="new")
    (root / "a").chmod(0o700)
    await bench.undo(done.act)
    assert (root / "a").read_text() == "old"
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o700


CONFLICTS = [
    (
        "files.write",
        {"path": "a", "content": "one\nagent\n"},
        lambda root: (root / "a").write_text("one\nperson\n"),
    ),
    (
        "files.write",
        {"path": "n", "content": "agent"},
        lambda root: (root / "n").write_text("agent and person"),
    ),
    ("files.write", {"path": "a", "content": "agent"}, lambda root: (root / "a").unlink()),
    (
        "files.write",
        {"path": "b", "content_base64": "AAA="},
        lambda root: (root / "b").write_bytes(b"\0\0\1"),
    ),
    ("files.delete", {"path": "a"}, lambda root: (root / "a").write_text("person")),
    ("files.delete", {"path": "d", "recursive": True}, lambda root: (root / "d").mkdir()),
    ("files.make_dir", {"path": "made"}, lambda root: (root / "made" / "mine").write_text("person")),
    ("files.move", {"path": "a", "to": "c"}, lambda root: (root / "a").write_text("person")),
]


@pytest.mark.parametrize(("tool", "args", "foreign"), CONFLICTS)
async def test_what_others_did_since_is_a_named_conflict_and_stays(
    bench, root, tool, args, foreign, snapshot
):
    (root / "a").write_text("one\ntwo\n")
    (root / "b").write_bytes(b"\0old")
    (root / "d").mkdir()
    (root / "d" / "x").write_text("x")
    done = await bench.agent().call(tool, args)
    foreign(root)
    before = snapshot(root)
    plan = (await bench.person().call("undo.preview", id=done.act)).plan
    assert plan.steps[0].status == "conflict"
    assert plan.conflicts[0].reason
    error = await _refused(bench.undo(done.act))
    assert error.kind == "conflict"
    assert snapshot(root) == before


@pytest.mark.parametrize(("tool", "args", "foreign"), CONFLICTS)
async def test_the_person_s_force_overwrites_and_can_be_taken_back_itself(
    bench, root, tool, args, foreign, snapshot
):
    (root / "a").write_text("one\ntwo\n")
    (root / "b").write_bytes(b"\0old")
    (root / "d").mkdir()
    (root / "d" / "x").write_text("x")
    first = snapshot(root, times=False)
    done = await bench.agent().call(tool, args)
    foreign(root)
    theirs = snapshot(root, times=False)
    outcome = await bench.undo(done.act, force=True)
    assert snapshot(root, times=False) == first
    await bench.undo(outcome.act)
    assert snapshot(root, times=False) == theirs


async def test_what_was_moved_takes_its_later_edits_back_along(bench, root):
    (root / "a").write_text("old")
    done = await bench.agent().call("files.move", path="a", to="b")
    (root / "b").write_text("old, and the person's words")
    plan = (await bench.person().call("undo.preview", id=done.act)).plan
    assert plan.steps[0].status == "merge"
    await bench.undo(done.act)
    assert os.listdir(root) == ["a"]
    assert (root / "a").read_text() == "old, and the person's words"


async def test_what_was_moved_and_is_gone_since_is_said_to_be_gone(bench, root):
    (root / "a").write_text("old")
    done = await bench.agent().call("files.move", path="a", to="b")
    (root / "b").unlink()
    plan = (await bench.person().call("undo.preview", id=done.act)).plan
    assert plan.steps[0].status == "gone"
    await _refused(bench.undo(done.act))
    assert os.listdir(root) == []


async def test_a_file_whose_folder_is_gone_is_a_conflict_that_says_so(bench, root):
    (root / "d").mkdir()
    (root / "d" / "x").write_text("x")
    done = await bench.agent().call("files.delete", path="d/x")
    (root / "d").rmdir()
    plan = (await bench.person().call("undo.preview", id=done.act)).plan
    assert plan.steps[0].status == "conflict"
    assert "folder is gone" in plan.conflicts[0].reason
    await _refused(bench.undo(done.act))


async def test_a_missing_blob_is_said_and_nothing_is_changed(bench, root, snapshot):
    (root / "a").write_text("old")
    (root / "b").write_text("keep")
    done = await bench.agent().call("files.write", path="a", content="new")
    await bench.kernel.store.transaction(lambda tx: tx.execute("DELETE FROM files_blob"))
    before = snapshot(root)
    plan = (await bench.person().call("undo.preview", id=done.act)).plan
    assert plan.steps[0].status == "gone"
    assert plan.steps[0].effects[0].reason == "missing-blob"
    await _refused(bench.undo(done.act))
    assert snapshot(root) == before


async def test_a_damaged_blob_is_found_before_anything_is_changed(bench, root, snapshot):
    (root / "d").mkdir()
    for number in range(3):
        (root / "d" / f"f{number}").write_text(f"content {number}")
    done = await bench.agent().call("files.delete", path="d", recursive=True)
    await bench.kernel.store.transaction(
        lambda tx: tx.execute(
            "UPDATE files_blob SET bytes = CAST('content X' AS BLOB) WHERE bytes = CAST('content 2' AS BLOB)"
        )
    )
    error = await _refused(bench.undo(done.act))
    assert "damaged" in error.message
    assert os.listdir(root) == []


async def test_an_inverse_is_confined_to_what_its_act_touched(bench, root, snapshot):
    (root / "a").write_text("mine")
    done = await bench.agent().call("files.write", path="b", content="agent")
    item = {"resource": bench.uri("a"), "before": {"kind": "absent"}, "after": {"kind": "absent"}}
    before = snapshot(root)
    module = bench.kernel.enter("module:undo")
    error = await _refused(
        module.call(
            "files.restore",
            {"root": bench.uri(), "items": [item]},
            as_="module:undo",
            confined_to_={bench.uri("b"): done.version},
        )
    )
    assert error.code == "scope.confined"
    assert snapshot(root) == before


async def test_an_inverse_stays_beneath_its_root(bench, root):
    item = {"resource": "files:/etc/x", "before": {"kind": "absent"}, "after": {"kind": "absent"}}
    call = bench.kernel.enter("module:undo").call("files.restore", {"root": bench.uri(), "items": [item]})
    assert (await _refused(call)).code == "scope.outside"


async def test_the_version_the_plan_counted_on_must_still_be_there(bench, root):
    done = await bench.agent().call("files.write", path="b", content="agent")
    item = {"resource": bench.uri("b"), "before": {"kind": "absent"}, "after": {"kind": "absent"}}
    error = await _refused(
        bench.kernel.enter("module:undo").call(
            "files.restore",
            {"root": bench.uri(), "items": [item]},
            as_="module:undo",
            confined_to_={bench.uri("b"): done.version[:-1] + "?"},
        )
    )
    assert error.code == "undo.changed"
    assert (root / "b").read_text() == "agent"


async def test_a_save_at_the_very_moment_of_the_exchange_survives(bench, root):
    """The person's editor saves after the undo has looked and before it swaps."""
    (root / "a").write_bytes(b"\0old")
    done = await bench.agent().call(
        "files.write", path="a", content_base64=base64.b64encode(b"\0new").decode()
    )

    def save(name):
        if name == "files.staged":
            (root / "a").write_bytes(b"\0the person's")

    off = faults.install(save)
    try:
        error = await _refused(bench.undo(done.act))
    finally:
        off()
    assert error.kind == "conflict"
    assert (root / "a").read_bytes() == b"\0the person's"
    assert os.listdir(root) == ["a"]


async def test_an_agent_may_undo_only_what_its_scope_of_today_holds(bench, root, tmp_path):
    (root / "a").write_text("old")
    done = await bench.agent().call("files.write", path="a", content="new")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    error = await _refused(bench.agent(roots=[elsewhere]).call("undo.run", id=done.act))
    assert "scope.outside" in (error.code + error.message)
    assert (root / "a").read_text() == "new"
    await bench.undo(done.act)
    assert (root / "a").read_text() == "old"


async def test_untouched_files_keep_their_times(bench, root):
    for name in ("a", "b"):
        (root / name).write_text(name)
        os.utime(root / name, ns=(1, 1_600_000_000_000_000_000))
    done = await bench.agent().call("files.write", path="a", content="new")
    await bench.undo(done.act)
    assert {(root / name).stat().st_mtime_ns for name in ("a", "b")} == {1_600_000_000_000_000_000}


async def test_putting_many_paths_back_needs_few_open_files(bench, root, snapshot):
    """An act on many paths comes as one restore; a process may have as few as 256 files open."""
    names = [f"f{number}" for number in range(200)]
    items = []
    for name in names:
        (root / name).write_text(name)
        found = (root / name).stat()
        sha256 = hashlib.sha256(name.encode()).hexdigest()
        after = {"kind": "file", "mode": stat.S_IMODE(found.st_mode), "size": len(name), "sha256": sha256}
        items.append({"resource": bench.uri(name), "before": {"kind": "absent"}, "after": after})
    before = snapshot(root)
    undo = bench.kernel.enter("module:undo")
    few = len(os.listdir("/dev/fd")) + 40
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, limits[1]))
    try:
        done = await undo.call("files.restore", {"root": bench.uri(), "items": items})
        assert os.listdir(root) == []
        await bench.undo(done.act)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert snapshot(root) == before


@pytest.mark.parametrize("size", [100, 100_000])
async def test_a_damaged_blob_is_in_the_preview_and_can_be_left_out(bench, root, size):
    agent = bench.agent()
    for name in "abc":
        (root / name).write_bytes(os.urandom(size))
        await agent.call("files.delete", path=name)
    await _damage(bench, size)
    plan = (await bench.person().call("undo.preview", session="s1")).plan
    assert plan.counts == {"clean": 2, "gone": 1}
    assert any("damaged" in effect.reason for step in plan.steps for effect in step.effects)
    await bench.person().call("undo.rewind", session="s1", skip_conflicts=True)
    assert len(list(root.iterdir())) == 2


async def _damage(bench, size):
    """Flips a bit in one kept blob, in the database or beside it."""
    if size > 64 * 1024:
        blob = sorted((bench.kernel.home.data / "packs" / "large").glob("??/*"))[0]
        data = bytearray(blob.read_bytes())
        data[5] ^= 1
        blob.write_bytes(data)
        return
    sql = "UPDATE files_blob SET bytes = x'00' WHERE digest = (SELECT min(digest) FROM files_blob)"
    await bench.kernel.store.transaction(lambda tx: tx.execute(sql))
