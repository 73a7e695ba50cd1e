"""What is left out, and that it is said."""

import os
import shutil
import types

import pytest

from tests.files.capture.rig import Rig, only, whats

pytestmark = pytest.mark.anyio


@pytest.fixture
def rig(tmp_path):
    rig = Rig(tmp_path)
    rig.write("src/a", b"a")
    rig.write("node_modules/big/index.js", b"made again")
    rig.write("env/pyvenv.cfg", b"")
    rig.write("env/lib/made", b"made again")
    rig.write("rust/target/CACHEDIR.TAG", b"")
    rig.write("rust/target/made", b"made again")
    rig.write("target/mine", b"mine")
    return rig


@pytest.mark.parametrize("watch", [True, False])
async def test_folders_that_can_be_made_again_are_left_out_and_named(rig, watch):
    capture = rig.capture(watch=watch)
    changes = await capture.baseline()
    assert changes.left_out == [b"env", b"node_modules", b"rust/target"]
    assert b"made again" not in rig.memory.blobs.values()
    assert b"mine" in rig.memory.blobs.values()
    rig.write("node_modules/more", b"more")
    rig.write("env/more", b"more")
    assert (await capture.after()).paths == []
    shutil.rmtree(rig.root / "node_modules")
    changes = await capture.after()
    assert whats(changes) == {"node_modules": "deleted"}
    assert only(changes, "node_modules").before.reason == "left_out"
    assert only(changes, "node_modules").before.state() is None
    rig.write("sub/node_modules/new", b"new")
    changes = await capture.after()
    assert (whats(changes), changes.left_out) == (
        {"sub": "created", "sub/node_modules": "created"},
        [b"sub/node_modules"],
    )
    await capture.close()


@pytest.mark.parametrize("watch", [True, False])
async def test_a_marker_put_into_a_known_folder_hides_nothing(rig, watch):
    capture = rig.capture(watch=watch)
    await capture.baseline()
    rig.write("src/pyvenv.cfg", b"")
    await capture.after()
    (rig.root / "src/a").unlink()
    assert rig.bytes_before(await capture.after(), "src/a") == b"a"
    await capture.close()


@pytest.mark.parametrize("watch", [True, False])
async def test_work_beside_a_marker_is_captured(rig, watch):
    """As `python -m venv .` in a project leaves it."""
    rig.write("proj/pyvenv.cfg", b"")
    rig.write("proj/lib/made", b"made")
    rig.write("proj/mine.py", b"mine")
    rig.write("build/CMakeCache.txt", b"")
    rig.write("build/CMakeLists.txt", b"mine too")
    capture = rig.capture(watch=watch)
    assert (await capture.baseline()).left_out == [b"env", b"node_modules", b"rust/target"]
    (rig.root / "proj/mine.py").unlink()
    (rig.root / "build/CMakeLists.txt").unlink()
    changes = await capture.after()
    assert rig.bytes_before(changes, "proj/mine.py") == b"mine"
    assert rig.bytes_before(changes, "build/CMakeLists.txt") == b"mine too"
    await capture.close()


@pytest.mark.parametrize("watch", [True, False])
async def test_work_put_into_what_was_left_out_is_captured_from_then_on(rig, watch):
    capture = rig.capture(watch=watch)
    await capture.baseline()
    rig.write("env/mine.py", b"mine")
    assert (await capture.after()).paths == []
    assert capture.left_out() == [b"node_modules", b"rust/target"]
    (rig.root / "env/mine.py").write_bytes(b"edited")
    assert rig.bytes_before(await capture.after(), "env/mine.py") == b"mine"
    await capture.close()


@pytest.mark.parametrize("watch", [True, False])
async def test_what_a_mount_hid_is_captured_once_it_shows(rig, watch, monkeypatch):
    rig.write("m/beneath", b"beneath")
    inode = (rig.root / "m").stat().st_ino
    with monkeypatch.context() as mounted:
        for call in (os.stat, os.fstat):
            mounted.setattr(os, call.__name__, _elsewhere(call, inode))
        capture = rig.capture(watch=watch)
        await capture.baseline()
        assert b"beneath" not in rig.memory.blobs.values()
    assert (await capture.after()).paths == []
    (rig.root / "m/beneath").unlink()
    assert rig.bytes_before(await capture.after(), "m/beneath") == b"beneath"
    await capture.close()


def _elsewhere(call, inode):
    """The system's call, by which one folder is on another file system."""

    def stat(*args, **more):
        found = call(*args, **more)
        if found.st_ino != inode:
            return found
        fields = {name: getattr(found, name) for name in dir(found) if name.startswith("st_")}
        return types.SimpleNamespace(**fields | {"st_dev": found.st_dev + 1})

    return stat


async def test_the_rules_are_a_setting(rig):
    capture = rig.capture(left_out=["src"])
    changes = await capture.baseline()
    assert changes.left_out == [b"src"]
    assert b"made again" in rig.memory.blobs.values()
    await capture.close()
    again = rig.capture(left_out=[])
    assert (await again.baseline()).by == "built"
    await again.close()
