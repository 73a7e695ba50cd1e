"""Somebody else writes at the worst moment, or swaps folders for links: nothing of theirs is lost."""

import os
import threading

import pytest

from takeback import faults
from takeback.errors import TakebackError
from takeback_acts.files import renames
from takeback_acts.files.script import Script

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["exchange", "no exchange"])
def file_system(request, monkeypatch):
    """Also as on a file system that can't swap two names."""
    if request.param == "no exchange":
        monkeypatch.setattr(renames, "_rename", None)


@pytest.fixture
def at():
    """Does something once, when a named place is passed."""
    ways_off = []

    def install(place, deed):
        waiting = [deed]

        def hook(name):
            if name == place and waiting:
                waiting.pop()()

        ways_off.append(faults.install(hook))

    yield install
    for off in ways_off:
        off()


async def _code(call):
    with pytest.raises(TakebackError) as error:
        await call
    return error.value.code


async def _states(bench):
    return [act.state for act in (await bench.person().call("undo.list")).acts]


async def test_a_save_between_look_and_write_stays(bench, root, at, file_system):
    (root / "a").write_text("old")
    at("files.staged", lambda: (root / "a").write_text("the person's"))
    assert await _code(bench.agent().call("files.write", path="a", content="agent")) == "files.changed"
    assert (root / "a").read_text() == "the person's"
    assert os.listdir(root) == ["a"]


async def test_a_save_by_rename_between_look_and_write_stays(bench, root, at, file_system):
    (root / "a").write_text("old")
    (root / "new").write_text("the person's")
    at("files.staged", lambda: os.rename(root / "new", root / "a"))
    assert await _code(bench.agent().call("files.edit", path="a", old="old", new="x")) == "files.changed"
    assert (root / "a").read_text() == "the person's"
    assert os.listdir(root) == ["a"]


async def test_a_file_made_between_look_and_write_stays(bench, root, at, file_system):
    at("files.staged", lambda: (root / "a").write_text("the person's"))
    assert await _code(bench.agent().call("files.write", path="a", content="agent")) == "files.changed"
    assert (root / "a").read_text() == "the person's"
    assert os.listdir(root) == ["a"]
    assert await _states(bench) == ["abandoned"]


async def test_a_file_gone_between_look_and_write_is_not_made_again(bench, root, at, file_system):
    (root / "a").write_text("old")
    at("files.staged", lambda: (root / "a").unlink())
    assert await _code(bench.agent().call("files.write", path="a", content="agent")) == "files.changed"
    assert os.listdir(root) == []


async def test_a_save_between_look_and_delete_stays(bench, root, at, file_system):
    (root / "a").write_text("old")
    at("files.staged", lambda: (root / "a").write_text("the person's"))
    assert await _code(bench.agent().call("files.delete", path="a")) == "files.changed"
    assert (root / "a").read_text() == "the person's"
    assert os.listdir(root) == ["a"]


async def test_a_file_put_into_a_folder_that_is_being_deleted_keeps_it(bench, root, at, file_system):
    (root / "d").mkdir()
    (root / "d" / "x").write_text("x")
    at("files.staged", lambda: (root / "d" / "mine").write_text("the person's"))
    assert await _code(bench.agent().call("files.delete", path="d", recursive=True)) == "files.changed"
    assert sorted(os.listdir(root / "d")) == ["mine", "x"]
    assert os.listdir(root) == ["d"]


async def test_a_file_put_into_a_folder_after_it_was_checked_comes_to_light(bench, root, at, file_system):
    """The last moment there is: a program that has the folder open writes when it is already moved away."""
    (root / "d").mkdir()
    (root / "d" / "x").write_text("x")
    handle = os.open(root / "d", os.O_RDONLY)

    def write():
        late = os.open("late", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=handle)
        os.write(late, b"the person's")
        os.close(late)

    at("files.renamed", write)
    await bench.agent().call("files.delete", path="d", recursive=True)
    os.close(handle)
    (kept,) = os.listdir(root)
    assert kept.startswith("d.kept-")
    assert (root / kept / "late").read_text() == "the person's"


async def test_a_file_changed_while_it_is_moved_moves_back(bench, root, at, file_system):
    (root / "a").write_text("old")
    at("files.staged", lambda: (root / "a").write_text("the person's"))
    assert await _code(bench.agent().call("files.move", path="a", to="b")) == "files.changed"
    assert os.listdir(root) == ["a"]
    assert (root / "a").read_text() == "the person's"


async def test_a_place_taken_while_something_is_moved_there_stays_taken(bench, root, at, file_system):
    (root / "a").write_text("old")
    (root / "b").write_text("other")
    at("files.staged", lambda: (root / "b").write_text("the person's"))
    call = bench.agent().call("files.move", path="a", to="b", overwrite=True)
    assert await _code(call) == "files.changed"
    assert {name: (root / name).read_text() for name in os.listdir(root)} == {"a": "old", "b": "the person's"}


async def test_undo_works_where_names_can_not_be_swapped(bench, root, file_system, snapshot):
    (root / "a").write_text("old")
    (root / "d").mkdir()
    (root / "d" / "x").write_text("x")
    before = snapshot(root, times=False)
    agent = bench.agent()
    await agent.call("files.write", path="a", content="new")
    await agent.call("files.delete", path="d", recursive=True)
    await agent.call("files.move", path="a", to="b")
    await bench.person().call("undo.rewind", session="s1")
    assert snapshot(root, times=False) == before


class _Standing:
    """A program whose working folder is one that is being deleted: it saves by its descriptor."""

    def __init__(self, folder):
        self.handle = os.open(folder, os.O_RDONLY)

    def save(self, name, text):
        new = os.open("new.tmp", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=self.handle)
        os.write(new, text.encode())
        os.close(new)
        os.rename("new.tmp", name, src_dir_fd=self.handle, dst_dir_fd=self.handle)

    def close(self):
        os.close(self.handle)


@pytest.mark.parametrize("name", ["x", "late"])
async def test_a_save_by_a_program_that_stands_in_a_folder_outlives_its_deletion(
    bench, root, at, file_system, name
):
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "e" / "x").write_text("x")
    (root / "d" / "y").write_text("y")
    program = _Standing(root / "d" / "e")
    at("files.renamed", lambda: program.save(name, "the person's"))
    done = await bench.agent().call("files.delete", path="d", recursive=True)
    program.close()
    (kept,) = os.listdir(root)
    assert kept.startswith("d.kept-")
    assert (root / kept / "e" / name).read_text() == "the person's"
    assert not (root / kept / "y").exists()
    assert any(kept in note for note in done.notes)
    (act,) = (await bench.person().call("undo.list")).acts
    assert act.state == "done"
    assert kept in act.summary
    await bench.undo(done.act)
    assert (root / "d" / "e" / "x").read_text() == "x"
    assert (root / kept / "e" / name).read_text() == "the person's"


async def test_a_save_into_a_displaced_file_itself_is_kept(bench, root, at):
    """A program that has the old file open writes to it when it has been checked already."""
    (root / "a").write_text("old")
    handle = os.open(root / "a", os.O_WRONLY)
    at("files.renamed", lambda: os.write(handle, b"the person's"))
    done = await bench.agent().call("files.write", path="a", content="agent")
    os.close(handle)
    (kept,) = [name for name in os.listdir(root) if name != "a"]
    assert (root / kept).read_text() == "the person's"
    assert (root / "a").read_text() == "agent"
    assert any(kept in note for note in done.notes)


async def test_a_save_while_an_undo_clears_a_folder_is_kept_and_told(bench, root, at):
    done = await bench.agent().call("files.make_dir", path="d")
    program = _Standing(root / "d")
    at("files.renamed", lambda: program.save("late", "the person's"))
    await bench.undo(done.act)
    program.close()
    (kept,) = os.listdir(root)
    assert (root / kept / "late").read_text() == "the person's"


async def _two_saves(bench, root, monkeypatch, name, *call, **args):
    """The person saves just before the effect and again just after it."""
    saves, real = [], Script._verify

    def save(text):
        (root / "new").write_text(text)
        os.rename(root / "new", root / name)
        saves.append(text)

    def verify(script, step, home):
        save(f"second {len(saves)}")
        real(script, step, home)

    off = faults.install(lambda place: save(f"first {len(saves)}") if place == "files.staged" else None)
    monkeypatch.setattr(Script, "_verify", verify)
    with pytest.raises(TakebackError) as error:
        await bench.agent().call(*call, **args)
    off()
    monkeypatch.undo()
    assert len(saves) == 2
    return saves, error.value


@pytest.mark.parametrize("name", ["a", "n" * 255, "ä" * 127])
@pytest.mark.parametrize("tool", ["files.delete", "files.write"])
async def test_two_saves_around_an_act_are_both_there_under_names_that_can_be_seen(
    bench, root, monkeypatch, name, tool
):
    args = {"path": name} if tool == "files.delete" else {"path": name, "content": "agent"}
    (root / name).write_text("old")
    saves, error = await _two_saves(bench, root, monkeypatch, name, tool, **args)
    assert error.code == "files.changed"
    assert (root / name).read_text() == saves[1]
    (kept,) = [one for one in os.listdir(root) if one != name]
    assert (root / kept).read_text() == saves[0]
    assert ".kept-" in kept
    assert kept in error.message
    assert "left as they made it" not in error.message


async def test_names_for_what_is_kept_are_given_once(bench, root, monkeypatch):
    (root / "a").write_text("old")
    for _ in range(3):
        await _two_saves(bench, root, monkeypatch, "a", "files.delete", path="a")
    assert len(os.listdir(root)) == 4
    assert not any(name.startswith(".") for name in os.listdir(root))
    assert set(await _states(bench)) == {"abandoned"}


async def test_an_act_that_somebody_came_before_is_abandoned(bench, root, at, file_system):
    (root / "a").write_text("old")
    at("files.staged", lambda: (root / "a").write_text("the person's"))
    assert await _code(bench.agent().call("files.write", path="a", content="agent")) == "files.changed"
    assert await _states(bench) == ["abandoned"]


async def test_folders_swapped_for_links_while_acts_run_never_lead_out(bench, root, tmp_path, snapshot):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("outside")
    (outside / "d").mkdir()
    (root / "d").mkdir()
    (root / "link").symlink_to(outside)
    before = snapshot(outside)
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            os.rename(root / "d", root / "aside")
            os.rename(root / "link", root / "d")
            os.rename(root / "d", root / "link")
            os.rename(root / "aside", root / "d")

    swapper = threading.Thread(target=swap)
    swapper.start()
    agent, done, refused = bench.agent(), 0, 0
    calls = [
        ("files.write", {"path": "d/a", "content": "inside"}),
        ("files.move", {"path": "d/a", "to": "d/b", "overwrite": True}),
        ("files.make_dir", {"path": "d/m"}),
        ("files.delete", {"path": "d/m"}),
        ("files.delete", {"path": "d/b"}),
    ]
    try:
        for number in range(5000):
            try:
                await agent.call(*calls[number % len(calls)])
                done += 1
            except TakebackError:
                refused += 1
            if number >= 150 and done and refused:  # how the threads take turns is not ours to say
                break
    finally:
        stop.set()
        swapper.join()
    assert snapshot(outside) == before
    assert done
    assert refused
