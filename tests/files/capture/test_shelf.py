"""A baseline on disk: whole, or made anew."""

import os
import shutil

import pytest

from takeback import faults
from takeback_acts.files.capture.node import walk
from takeback_acts.files.capture.shelf import load
from tests.files.capture.rig import Rig, whats

pytestmark = pytest.mark.anyio


@pytest.fixture
def rig(tmp_path):
    rig = Rig(tmp_path)
    rig.write("a/b/file", b"one")
    rig.write("a/\udcff", b"two")
    (rig.root / "link").symlink_to(b"a\xff")
    os.mkfifo(rig.root / "pipe")
    return rig


def rows(rig):
    loaded = load(rig.state / "one" / "baseline")
    assert loaded is not None
    tree, _ = loaded
    return {node.path(): sorted(node.rows()) for node in walk(tree.top)}


async def test_what_changed_while_nobody_looked_is_found_after_a_start(rig):
    capture = rig.capture()
    await capture.baseline()
    await capture.close()
    rig.write("a/b/file", b"1!e")
    (rig.root / "link").unlink()
    again = rig.capture()
    changes = await again.baseline()
    assert whats(changes) == {"a/b/file": "content", "link": "deleted"}
    assert rig.bytes_before(changes, "a/b/file") == b"one"
    await again.close()


async def test_deleted_and_added_rows_are_as_they_were_after_loading(rig):
    capture = rig.capture()
    await capture.baseline()
    (rig.root / "a/\udcff").unlink()
    rig.write("a/new", b"new")
    shutil.rmtree(rig.root / "a/b")
    await capture.after()
    await capture.save()
    assert [name for name, _ in rows(rig)[b"a"]] == [b"new"]
    assert set(rows(rig)) == {b"", b"a"}
    assert {name: row.target for name, row in rows(rig)[b""]} == {b"link": b"a\xff", b"pipe": b""}
    await capture.close()


@pytest.mark.parametrize("at", [0, 20, 40, 200, -1])
async def test_a_damaged_baseline_is_made_anew_and_is_said(rig, at):
    capture = rig.capture()
    await capture.baseline()
    await capture.close()
    shelf = rig.state / "one" / "baseline"
    data = bytearray(shelf.read_bytes())
    data[at] ^= 1
    shelf.write_bytes(data)
    again = rig.capture()
    changes = await again.baseline()
    assert changes.by == "built"
    assert [note for note in changes.notes if note.startswith("baseline.rebuilt")]
    await again.close()


async def test_a_shortened_baseline_is_made_anew(rig):
    capture = rig.capture()
    await capture.baseline()
    await capture.close()
    shelf = rig.state / "one" / "baseline"
    shelf.write_bytes(shelf.read_bytes()[:-7])
    again = rig.capture()
    assert (await again.baseline()).by == "built"
    await again.close()


async def test_a_crash_while_saving_leaves_the_old_baseline(rig):
    capture = rig.capture()
    await capture.baseline()
    before = rows(rig)
    rig.write("later", b"later")
    await capture.after()

    def die(name):
        raise KeyboardInterrupt

    remove = faults.install(die)
    try:
        with pytest.raises(KeyboardInterrupt):
            await capture.save()
    finally:
        remove()
    assert rows(rig) == before
    assert sorted(path.name for path in (rig.state / "one").iterdir()) == ["baseline"]
    await capture.close()


async def test_another_root_of_the_same_name_is_a_baseline_anew(rig):
    capture = rig.capture()
    await capture.baseline()
    await capture.close()
    rig.root.rename(rig.root.with_name("old"))
    rig.write("other", b"other")
    again = rig.capture()
    assert (await again.baseline()).by == "built"
    await again.close()


async def test_the_digests_that_a_sweep_must_spare(rig):
    capture = rig.capture()
    await capture.baseline()
    assert {rig.memory.get(sha256) for sha256 in capture.live()} == {b"one", b"two"}
    await capture.close()
