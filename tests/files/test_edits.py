"""Edits that somebody else's tools make: captured before, recorded after, from what really happened."""

import os
from base64 import b64encode
from itertools import count

import pytest

from takeback.errors import NotFoundError
from takeback.kernel import Kernel
from takeback_acts.files.module import FilesModule
from takeback_core.undo.module import UndoModule

pytestmark = pytest.mark.anyio

_numbers = count()


def _via(ctx):
    """As a door calls on an agent's behalf: the agent started it, a module passes it on."""
    return ctx._replace(chain=(ctx.holder,), holder="module:files")


async def _begin(bench, *names, ctx=None, **more):
    id = f"edit-{next(_numbers)}"
    given = [str(bench.root / name) for name in names]
    begun = await _via(ctx or bench.agent()).files.begin_edit(id=id, paths=given, tool="Edit", **more)
    return id, begun


async def _end(bench, id, ctx=None, **more):
    return await _via(ctx or bench.agent()).files.end_edit(id=id, **more)


async def _row(bench, act):
    return (await bench.person().undo.show(id=act)).act


async def test_an_edit_is_an_act_of_the_agent_and_is_taken_back(bench, snapshot):
    (bench.root / "a.txt").write_text("one\n")
    before = snapshot(bench.root)
    id, begun = await _begin(bench, "a.txt")
    assert begun.paths == [str(bench.root / "a.txt")]
    (bench.root / "a.txt").write_text("two\n")
    ended = await _end(bench, id)
    row = await _row(bench, ended.act)
    assert (row.actor, row.session, row.turn) == ("mcp:agent:juno", "s1", "t1")
    assert row.summary == f"Edited {bench.root / 'a.txt'}"
    await bench.undo(ended.act)
    assert snapshot(bench.root) == before


async def test_a_new_file_in_new_folders_goes_with_them(bench, snapshot):
    before = snapshot(bench.root, times=False)
    id, _ = await _begin(bench, "x/y/new.txt")
    (bench.root / "x/y").mkdir(parents=True)
    (bench.root / "x/y/new.txt").write_text("hello")
    ended = await _end(bench, id)
    await bench.undo(ended.act)
    assert snapshot(bench.root, times=False) == before


async def test_two_at_once_in_one_new_folder_are_two_acts(bench):
    one, _ = await _begin(bench, "x/a.txt")
    two, _ = await _begin(bench, "x/b.txt")
    (bench.root / "x").mkdir()
    (bench.root / "x/a.txt").write_text("a")
    first = await _end(bench, one)
    (bench.root / "x/b.txt").write_text("b")
    second = await _end(bench, two)
    await bench.undo(second.act)
    assert sorted(os.listdir(bench.root / "x")) == ["a.txt"]
    await bench.undo(first.act)
    assert not (bench.root / "x").exists()


async def test_what_changed_nothing_is_no_act(bench):
    (bench.root / "a.txt").write_text("one\n")
    id, _ = await _begin(bench, "a.txt")
    assert (await _end(bench, id)).act is None
    assert (await bench.person().undo.list()).acts == []


async def test_the_same_beginning_again_keeps_the_first_image(bench):
    (bench.root / "a.txt").write_text("one\n")
    id, _ = await _begin(bench, "a.txt")
    (bench.root / "a.txt").write_text("two\n")
    again = await _via(bench.agent()).files.begin_edit(id=id, paths=[str(bench.root / "a.txt")], tool="Edit")
    assert again.id == id
    ended = await _end(bench, id)
    await bench.undo(ended.act)
    assert (bench.root / "a.txt").read_text() == "one\n"


async def test_an_edit_ends_once_and_only_for_its_own_agent(bench):
    id, _ = await _begin(bench, "a.txt")
    with pytest.raises(NotFoundError, match="no open edit"):
        await _end(bench, id, ctx=bench.agent("other"))
    await _end(bench, id)
    with pytest.raises(NotFoundError, match="no open edit"):
        await _end(bench, id)


async def test_a_path_outside_is_named_and_the_others_are_captured(bench, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("theirs")
    (bench.root / "a.txt").write_text("one\n")
    id = "mixed"
    begun = await _via(bench.agent()).files.begin_edit(
        id=id, paths=[str(outside), str(bench.root / "a.txt")], tool="Edit"
    )
    assert begun.paths == [str(bench.root / "a.txt")]
    assert len(begun.notes) == 1
    assert "outside.txt" in begun.notes[0]


async def test_an_open_edit_outlives_its_process(tmp_path, root):
    (root / "a.txt").write_text("one\n")

    def agent(kernel):
        from takeback.context import Scope

        return _via(kernel.enter("mcp:agent:juno", session="s", turn="t", scope=Scope(roots=(str(root),))))

    async with Kernel(tmp_path / "home", settings={}, modules=[UndoModule, FilesModule]) as kernel:
        await agent(kernel).files.begin_edit(id="e", paths=[str(root / "a.txt")], tool="Edit")
    (root / "a.txt").write_text("two\n")
    async with Kernel(tmp_path / "home", settings={}, modules=[UndoModule, FilesModule]) as kernel:
        ended = await agent(kernel).files.end_edit(id="e", interrupted=True)
        assert "interrupted" in (await kernel.enter("cli:person").undo.show(id=ended.act)).act.summary
        await kernel.enter("cli:person").undo.run(id=ended.act)
    assert (root / "a.txt").read_text() == "one\n"


async def test_what_two_sessions_edited_at_once_is_nobodys(bench):
    (bench.root / "a.txt").write_text("one\n")
    other = bench.agent("other", session="s2")
    one, _ = await _begin(bench, "a.txt")
    two, _ = await _begin(bench, "a.txt", ctx=other)
    (bench.root / "a.txt").write_text("two\n")
    first = await _end(bench, one)
    (bench.root / "a.txt").write_text("three\n")
    second = await _end(bench, two, ctx=other)
    rows = [await _row(bench, ended.act) for ended in (first, second)]
    assert [row.actor for row in rows] == ["module:files"] * 2
    await bench.undo(second.act)
    assert (bench.root / "a.txt").read_text() == "two\n"
    await bench.undo(first.act)
    assert (bench.root / "a.txt").read_text() == "one\n"


async def test_a_commands_window_leaves_an_edit_in_it_to_the_edit(bench):
    (bench.root / "a.txt").write_text("one\n")
    window = await bench.person().files.begin_command(
        cwd=str(bench.root), roots=[str(bench.root)], command=["make"]
    )
    id, _ = await _begin(bench, "a.txt")
    (bench.root / "a.txt").write_text("two\n")
    edited = await _end(bench, id)
    (bench.root / "b.txt").write_text("of the command")
    ended = await bench.person().files.end_command(window=window.window)
    assert (ended.changed, ended.coincident) == (1, [])
    touched = (await _row(bench, ended.act)).touched
    assert [one.resource for one in touched] == [bench.uri("b.txt")]
    await bench.undo(edited.act)
    assert (bench.root / "a.txt").read_text() == "one\n"


async def test_a_sweep_spares_what_an_open_edit_needs(bench, later):
    (bench.root / "a.txt").write_text("one\n" * 50_000)
    id, _ = await _begin(bench, "a.txt")
    (bench.root / "a.txt").write_text("two\n")
    later(10 * 86_400)
    await bench.person().files.gc(grace_hours=1)
    ended = await _end(bench, id)
    await bench.undo(ended.act)
    assert (bench.root / "a.txt").read_text() == "one\n" * 50_000


def _image(path, data=None):
    return {"path": str(path), "content_base64": None if data is None else b64encode(data).decode()}


async def test_a_given_image_is_what_lay_there(bench):
    path = bench.root / "a.txt"
    path.write_text("two\n")
    path.chmod(0o644)
    id, _ = await _begin(bench, "a.txt", images=[_image(path, b"one\n")], at=1)
    ended = await _end(bench, id, images=[_image(path, b"two\n")])
    await bench.undo(ended.act)
    assert path.read_text() == "one\n"


async def test_what_came_after_a_given_image_is_not_overwritten(bench):
    path = bench.root / "a.txt"
    path.write_bytes(b"\0three")
    path.chmod(0o644)
    id, _ = await _begin(bench, "a.txt", images=[_image(path, b"\0one")], at=1)
    ended = await _end(bench, id, images=[_image(path, b"\0two")])
    previewed = await bench.person().undo.preview(id=ended.act)
    assert previewed.plan.steps[0].status == "conflict"


async def test_a_given_absence_never_deletes_what_was_there_before(bench):
    path = bench.root / "old.txt"
    path.write_text("of a person")
    at = path.stat().st_mtime_ns + 10**12
    id, _ = await _begin(bench, "old.txt", images=[_image(path)], at=at)
    ended = await _end(bench, id, images=[_image(path, b"of a person")])
    assert ended.act is None
    assert "may have been there before" in ended.notes[0]


async def test_a_given_absence_takes_back_what_came_later(bench):
    path = bench.root / "new.txt"
    path.write_text("new")
    path.chmod(0o644)
    id, _ = await _begin(bench, "new.txt", images=[_image(path)], at=1)
    ended = await _end(bench, id, images=[_image(path, b"new")])
    await bench.undo(ended.act)
    assert not path.exists()


async def test_a_path_without_an_image_is_named(bench):
    (bench.root / "a.txt").write_text("x")
    _, begun = await _begin(bench, "a.txt", images=[], at=1)
    assert begun.paths == []
    assert "Nothing is known" in begun.notes[0]
