"""Kept git objects are let go when no baseline counts on them, and never before."""

import contextlib
import os
import shutil

import pytest

from takeback import faults
from tests.files.capture.rig import Rig, whats
from tests.files.capture.test_git import commit, git

pytestmark = pytest.mark.anyio


class Work(Rig):
    """A root with its one capture."""

    def __init__(self, place):
        super().__init__(place)
        self.held = self.capture()


class DiedError(Exception):
    """The process ended here."""


@pytest.fixture
async def work(tmp_path):
    """A repository of three committed files under capture."""
    rig = Work(tmp_path)
    git(rig.root, "init", "-q", "-b", "main")
    for name in ("one", "two", "three"):
        rig.write(name, name.encode() * 100)
    commit(rig.root)
    assert (await rig.held.baseline()).notes == []
    yield rig
    await rig.held.close()


def kept(rig):
    """The files of kept objects by name, with what has been linked for each of them."""
    return {path.name for path in (rig.state / "one" / "git").rglob("objects/*/*")}


def repacked(rig):
    """Everything in one new pack, and nothing else any more."""
    git(rig.root, "reflog", "expire", "--expire=now", "--all")
    git(rig.root, "gc", "-q", "--prune=now")


async def gone(rig, *names):
    """The bytes that the files had, told after they were removed."""
    for name in names:
        (rig.root / name).unlink()
    changes = await rig.held.after()
    return [rig.bytes_before(changes, name) for name in names]


async def test_what_the_baseline_counts_on_stays(work):
    before = kept(work)
    await work.held.prune()
    assert kept(work) < before  # commits and trees are no file's content
    shutil.rmtree(work.root / ".git")
    assert await gone(work, "one", "two", "three") == [b"one" * 100, b"two" * 100, b"three" * 100]


async def test_of_an_old_pack_and_a_new_one_the_repository_s_own_stays(work):
    repacked(work)
    await work.held.after()
    work.write("four", b"four")
    commit(work.root)
    repacked(work)
    await work.held.after()
    assert len([name for name in kept(work) if name.endswith(".pack")]) == 2
    await work.held.prune()
    (pack,) = (work.root / ".git/objects/pack").glob("*.pack")
    assert {name for name in kept(work) if not name.endswith(".rev")} == {pack.name, pack.stem + ".idx"}
    shutil.rmtree(work.root / ".git")
    assert await gone(work, "one", "two") == [b"one" * 100, b"two" * 100]


async def test_what_the_person_s_git_has_thrown_away_stays_while_it_is_counted_on(work):
    git(work.root, "rm", "-q", "--cached", "one")
    git(work.root, "commit", "-q", "--amend", "-m", "without")
    repacked(work)
    await work.held.after()
    await work.held.prune()
    assert await gone(work, "one", "two") == [b"one" * 100, b"two" * 100]


async def test_the_objects_of_a_repository_that_is_gone_go_with_it(work):
    (work.root / "sub").mkdir()
    git(work.root / "sub", "init", "-q")
    work.write("sub/file", b"nested")
    commit(work.root / "sub")
    await work.held.after()
    assert {path.name for path in (work.state / "one" / "git").iterdir()} == {"1", "2"}
    shutil.rmtree(work.root / "sub")
    await work.held.after()
    await work.held.save()
    await work.held.prune()
    assert {path.name for path in (work.state / "one" / "git").iterdir()} == {"1"}
    # One that comes later is kept like any other.
    git(work.root, "clone", "-q", "--no-hardlinks", ".", "copy")
    assert (await work.held.after()).notes == []
    commit(work.root / "copy", "touched")
    await work.held.after()
    assert await gone(work, "copy/one") == [b"one" * 100]


async def test_what_only_the_baseline_on_the_shelf_counts_on_stays(work):
    """As when a command is still running: after a crash it is told from there."""
    await work.held.save()
    oid = git(work.root, "rev-parse", "HEAD:one")
    assert await gone(work, "one") == [b"one" * 100]
    work.memory.blobs.clear()
    await work.held.prune()
    assert oid[2:] in kept(work)
    await work.held.close(save=False)
    work.held = work.capture()
    changes = await work.held.baseline()
    assert whats(changes)["one"] == "deleted"
    assert work.bytes_before(changes, "one") == b"one" * 100
    await work.held.save()
    await work.held.prune()
    assert oid[2:] not in kept(work)


async def test_an_index_that_can_not_be_read_stays_with_its_pack(work):
    repacked(work)
    await work.held.after()
    (index,) = (work.state / "one" / "git").rglob("*.idx")
    index.unlink()
    index.write_bytes(b"not an index")
    await work.held.prune()
    assert index.name in kept(work)
    assert index.stem + ".pack" in kept(work)


@pytest.mark.parametrize("at", range(12))
async def test_a_crash_in_the_middle_leaves_what_is_counted_on(work, at):
    repacked(work)
    await work.held.after()
    work.write("four", b"four")
    commit(work.root)
    repacked(work)
    await work.held.after()
    passed = iter(range(at, -1, -1))

    def die(place):
        if place.startswith("files.prune") and next(passed, 0) == 0:
            raise DiedError

    remove = faults.install(die)
    try:
        with contextlib.suppress(DiedError):
            await work.held.prune()
    finally:
        remove()
    await work.held.close(save=False)
    work.held = work.capture()
    assert (await work.held.baseline()).notes == []
    await work.held.save()
    await work.held.prune()
    (pack,) = (work.root / ".git/objects/pack").glob("*.pack")
    assert {name for name in kept(work) if not name.endswith(".rev")} == {pack.name, pack.stem + ".idx"}
    shutil.rmtree(work.root / ".git")
    assert os.listdir(work.root)
    assert await gone(work, "one", "two") == [b"one" * 100, b"two" * 100]
