"""Roots that fight back: depth, width, special files, races, and a root that is moved away."""

import os
import subprocess
import sys
import threading
import tracemalloc
from contextlib import contextmanager

import pytest

from takeback.errors import ConflictError
from takeback_acts.files.capture.way import FOLDER
from tests.files.capture.rig import Rig, only, whats

pytestmark = pytest.mark.anyio

DEPTH = 2_000
WIDTH = 10_000
NOBODY = 65534


@pytest.fixture
def rig(tmp_path):
    return Rig(tmp_path)


@contextmanager
def chain(root, depth, name=b"d"):
    """A folder in a folder in a folder; yields the innermost, open."""
    here = os.open(root, FOLDER)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, FOLDER, dir_fd=here)
        os.close(here)
        here = below
    yield here
    for _ in range(depth):
        above = os.open("..", FOLDER, dir_fd=here)
        os.close(here)
        os.rmdir(name, dir_fd=above)
        here = above
    os.close(here)


@pytest.mark.parametrize("options", [{"watch": True}, {"watch": False}, {"watch": False, "crew_from": 0}])
async def test_depth_costs_neither_recursion_nor_descriptors(rig, options):
    with chain(rig.root, DEPTH, b"deep") as inner:
        place = os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=inner)
        capture = rig.capture(**options)
        assert (await capture.baseline()).notes == []
        os.write(place, b"written")
        os.close(place)
        (change,) = (await capture.after()).paths
        assert change.path == b"deep/" * DEPTH + b"file"
        os.unlink("file", dir_fd=inner)
        assert [str(change.what) for change in (await capture.after()).paths] == ["deleted"]
        await capture.close()
        again = rig.capture(**options)
        changes = await again.baseline()
        assert (changes.by, changes.paths) == ("scan", [])
        await again.close()


async def test_a_wide_folder_takes_memory_in_proportion(rig):
    for number in range(WIDTH):
        os.close(os.open(rig.root / f"{number:06d}", os.O_CREAT | os.O_WRONLY))
    capture = rig.capture()
    tracemalloc.start()
    try:
        await capture.baseline()
        held, most = tracemalloc.get_traced_memory()
        assert held < 150 * WIDTH
        assert most < 700 * WIDTH
        tracemalloc.reset_peak()
        rig.write("000007", b"changed")
        (rig.root / "000008").unlink()
        assert whats(await capture.after()) == {"000007": "content", "000008": "deleted"}
        assert tracemalloc.get_traced_memory()[1] - held < 700 * WIDTH
    finally:
        tracemalloc.stop()
    await capture.close()


async def test_special_files_are_told_and_never_opened(rig):
    capture = rig.capture()
    await capture.baseline()
    os.mkfifo(rig.root / "pipe")
    os.mknod(rig.root / "null", 0o020666, os.makedev(1, 3))
    changes = await capture.after()
    assert {(change.name, change.after.kind) for change in changes.paths} == {
        (b"pipe", "special"),
        (b"null", "special"),
    }
    assert only(changes, "pipe").after.state() is None
    await capture.close()


async def test_links_are_not_followed(rig, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (rig.root / "out").symlink_to(outside)
    rig.write("inside/file", b"inside")
    capture = rig.capture()
    await capture.baseline()
    (rig.root / "inside/file").unlink()
    (rig.root / "inside").rmdir()
    (rig.root / "inside").symlink_to(outside)
    changes = await capture.after()
    assert whats(changes) == {"inside": "type", "inside/file": "deleted"}
    assert only(changes, "inside").after.target == os.fsencode(outside)
    assert b"secret" not in rig.memory.blobs.values()
    await capture.close()


async def test_a_root_that_is_moved_away_or_replaced_is_an_error_and_nothing_is_taken_over(rig):
    rig.write("file", b"one")
    capture = rig.capture()
    await capture.baseline()
    away = rig.root.with_name("away")
    rig.write("file", b"two")
    rig.root.rename(away)
    for replaced in (False, True):
        if replaced:
            rig.root.mkdir()
        with pytest.raises(ConflictError) as caught:
            await capture.after()
        assert caught.value.code == "files.root_moved"
    rig.root.rmdir()
    away.rename(rig.root)
    changes = await capture.after()
    assert rig.bytes_before(changes, "file") == b"one"
    await capture.close()


async def test_a_root_that_moves_while_it_is_looked_at(rig):
    rig.write("file", b"one")
    capture = rig.capture()
    await capture.baseline()
    rig.write("file", b"two")
    put = rig.memory.put

    def moving(data):
        rig.root.rename(rig.root.with_name("away"))
        rig.memory.put = put
        return put(data)

    rig.memory.put = moving
    with pytest.raises(ConflictError):
        await capture.after()
    rig.root.with_name("away").rename(rig.root)
    assert rig.bytes_before(await capture.after(), "file") == b"one"
    await capture.close()


async def test_a_file_that_changes_while_it_is_read_is_read_again(rig):
    path = rig.write("file", b"one")
    capture = rig.capture()
    await capture.baseline()
    path.write_bytes(b"x" * (2 << 20))
    put_file = rig.memory.put_file

    def growing(handle, size):
        with open(path, "ab") as file:
            file.write(b"more")
        rig.memory.put_file = put_file
        return put_file(handle, size)

    rig.memory.put_file = growing
    after = only(await capture.after(), "file").after
    assert rig.memory.get(after.sha256) == b"x" * (2 << 20) + b"more"
    await capture.close()


async def test_a_file_that_never_rests_is_unstable_and_taken_once_it_does(rig):
    path = rig.write("file", b"one")
    capture = rig.capture()
    await capture.baseline()
    path.write_bytes(b"x" * (2 << 20))
    put_file = rig.memory.put_file

    def restless(handle, size):
        with open(path, "ab") as file:
            file.write(b"more")
        return put_file(handle, size)

    rig.memory.put_file = restless
    changes = await capture.after()
    assert rig.bytes_before(changes, "file") == b"one"
    assert only(changes, "file").after.reason == "unstable"
    rig.memory.put_file = put_file
    after = only(await capture.scan(), "file").after
    assert rig.memory.get(after.sha256) == path.read_bytes()
    await capture.close()


async def test_a_file_that_vanishes_while_a_folder_is_taken(rig):
    capture = rig.capture()
    await capture.baseline()
    for number in range(3):
        rig.write(f"new/{number}", b"%d" % number)
    put = rig.memory.put

    def vanishing(data):
        for path in (rig.root / "new").iterdir():
            path.unlink()
        return put(data)

    rig.memory.put = vanishing
    changes = await capture.after()
    assert len(changes.paths) == 2
    rig.memory.put = put
    assert set(whats(await capture.after()).values()) == {"deleted"}
    await capture.close()


async def test_a_writer_beside_never_breaks_a_look_and_is_seen_whole_at_last(rig):
    for number in range(40):
        rig.write(f"{number % 4}/{number}", b"start")
    capture = rig.capture(watch=True)
    await capture.baseline()
    stop = threading.Event()

    def write():
        turn = 0
        while not stop.is_set():
            turn += 1
            path = rig.root / f"{turn % 4}" / f"{turn % 40}"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"%d" % turn)
            if turn % 7 == 0:
                path.unlink()
            if turn % 50 == 0:
                (rig.root / "0").rename(rig.root / f"moved{turn}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(8):
            await capture.after()
    finally:
        stop.set()
        writer.join()
    await capture.after()
    assert whats(await capture.scan()) == {}
    await capture.close()


async def test_names_that_differ_in_case_alone_are_two(rig):
    rig.write("Name", b"upper")
    rig.write("name", b"lower")
    capture = rig.capture()
    await capture.baseline()
    (rig.root / "Name").unlink()
    rig.write("NAME", b"third")
    assert whats(await capture.after()) == {"Name": "deleted", "NAME": "created"}
    await capture.close()


async def test_a_hard_link_written_through_another_name_is_seen_by_the_watcher(rig, tmp_path):
    path = rig.write("file", b"one")
    os.link(path, tmp_path / "outside")
    os.link(path, rig.root / "second")
    capture = rig.capture(watch=True)
    await capture.baseline()
    (tmp_path / "outside").write_bytes(b"two")
    changes = await capture.after()
    assert changes.by == "watch"
    assert whats(changes) == {"file": "content", "second": "content"}
    assert rig.bytes_before(changes, "second") == b"one"
    await capture.close()


async def test_the_home_in_a_root_is_not_captured(rig):
    home = rig.root / "state"
    home.mkdir()
    (home / "private").write_bytes(b"private")
    rig.state = home
    capture = rig.capture()
    await capture.baseline()
    assert b"private" not in rig.memory.blobs.values()
    await capture.close()


SHUT = """
import asyncio, concurrent.futures.thread, inotify_simple, os, sys
from pathlib import Path
from tests.files.capture.rig import Rig, whats

def told(changes):
    return sorted(whats(changes).items())

async def main():
    rig = Rig(Path(sys.argv[1]))
    for name in ("a", "b"):
        rig.write(f"shut/in/{name}", b"one")
    folders = [rig.root, rig.root / "shut", rig.root / "shut/in"]
    capture = rig.capture(watch=sys.argv[2] == "watch")
    await capture.baseline()
    (rig.root / "shut/in/a").unlink()
    for folder, mode in zip(reversed(folders), (0o300, int(sys.argv[4], 8), 0), strict=True):
        folder.chmod(mode)
    changes = await capture.after()
    print(told(changes), rig.bytes_before(changes, "shut/in/a").decode(), changes.notes)
    modes = []
    for folder in folders:
        modes.append(oct(folder.stat().st_mode & 0o777))
        folder.chmod(0o700)
    print(modes)
    changes = await capture.after()
    print(told(changes), changes.notes)
    await capture.close()
# The superuser may read everything, so the test needs to be somebody else.
if os.geteuid() == 0:
    os.setgroups([])
    os.setegid(int(sys.argv[3]))
    os.seteuid(int(sys.argv[3]))
asyncio.run(main())
"""

UNREADABLE = """
import asyncio, concurrent.futures.thread, inotify_simple, os, sys
from pathlib import Path
from tests.files.capture.rig import Rig, only
async def main():
    rig = Rig(Path(sys.argv[1]))
    rig.write("file", b"one").chmod(0)
    rig.write("shut/inner", b"two")
    (rig.root / "shut").chmod(0)
    capture = rig.capture(watch=sys.argv[2] == "watch")
    await capture.baseline()
    (rig.root / "file").unlink()
    (rig.root / "shut").chmod(0o700)
    changes = await capture.after()
    print(only(changes, "file").before.reason, only(changes, "shut").what, len(changes.paths))
    (rig.root / "shut/inner").unlink()
    changes = await capture.scan()
    print(rig.bytes_before(changes, "shut/inner").decode())
    await capture.close()
# The superuser may read everything, so the test needs to be somebody else.
if os.geteuid() == 0:
    os.setgroups([])
    os.setegid(int(sys.argv[3]))
    os.seteuid(int(sys.argv[3]))
asyncio.run(main())
"""


@pytest.mark.parametrize("way", ["watch", "scan"])
def test_what_may_not_be_read_is_told_as_not_captured(tmp_path_factory, way):
    assert _as_nobody(tmp_path_factory, UNREADABLE, way).split() == ["denied", "mode", "2", "two"]


@pytest.mark.parametrize("mode", ["000", "300", "400"])
@pytest.mark.parametrize("way", ["watch", "scan"])
def test_what_was_done_in_a_folder_before_it_was_shut_is_told(tmp_path_factory, way, mode):
    first, left, second = _as_nobody(tmp_path_factory, SHUT, way, mode).splitlines()
    assert first == "[('', 'mode'), ('shut', 'mode'), ('shut/in', 'mode'), ('shut/in/a', 'deleted')] one []"
    assert left == f"['0o0', '{oct(int(mode, 8))}', '0o300']"
    assert second == "[('', 'mode'), ('shut', 'mode'), ('shut/in', 'mode')] []"


def _as_nobody(tmp_path_factory, program, way, *more):
    """What a program prints that does a part of its work without root's rights."""
    place = tmp_path_factory.mktemp("open")
    for folder in (place, *place.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    os.chown(place, *(NOBODY, NOBODY) if os.geteuid() == 0 else (-1, -1))
    env = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]}
    words = [sys.executable, "-c", program, place, way, str(NOBODY), *more]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
