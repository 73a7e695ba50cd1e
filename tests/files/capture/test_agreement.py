"""The watcher, the scan, the scan by several processes and a plain walk tell the same, whatever happens."""

import asyncio
import contextlib
import mmap
import os
import shutil
import stat
import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.files.capture.rig import Rig, differences, snapshot, told

NAMES = st.sampled_from([b"a", b"B", b"b", b"\xff\xfe", b"d"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(b"/".join)
DATA = st.sampled_from([b"", b"one", b"two", b"four"])


def _write(root, path, data, _):
    with open(os.path.join(root, path), "wb") as file:
        file.write(data)


def _append(root, path, data, _):
    with open(os.path.join(root, path), "ab") as file:
        file.write(data)


def _hidden(root, path, _, __):
    """The same size and the same mtime: only the bytes tell."""
    whole = os.path.join(root, path)
    found = os.stat(whole)
    with open(whole, "r+b") as file:
        old = file.read()
        file.seek(0)
        file.write(old[::-1])
    os.utime(whole, ns=(found.st_atime_ns, found.st_mtime_ns))


def _mapped(root, path, _, __):
    with open(os.path.join(root, path), "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[0:1] = b"M"


def _folder(root, path, _, __):
    os.makedirs(os.path.join(root, path))


def _remove(root, path, _, __):
    whole = os.path.join(root, path)
    if os.path.isdir(whole) and not os.path.islink(whole):
        shutil.rmtree(whole)
    else:
        os.unlink(whole)


def _rename(root, path, _, other):
    os.rename(os.path.join(root, path), os.path.join(root, other))


def _swap(root, path, _, other):
    """Away and back by another way, so that a known name leads to another folder."""
    aside = os.path.join(root, b"aside")
    os.rename(os.path.join(root, path), aside)
    with contextlib.suppress(OSError):
        os.rename(os.path.join(root, other), os.path.join(root, path))
    with contextlib.suppress(OSError):
        os.rename(aside, os.path.join(root, other))


def _out_and_in(root, path, data, _):
    """Moved out, changed where nobody watches, and moved back in."""
    outside = root + b".outside"
    os.rename(os.path.join(root, path), outside)
    if os.path.isdir(outside) and not stat.S_ISFIFO(_mode_of(os.path.join(outside, b"a"))):
        with open(os.path.join(outside, b"a"), "wb") as file:
            file.write(data)
    os.rename(outside, os.path.join(root, path))


def _link(root, path, _, other):
    os.link(os.path.join(root, path), os.path.join(root, other), follow_symlinks=False)


def _point(root, path, data, _):
    os.symlink(data or b"nowhere", os.path.join(root, path))


def _mode(root, path, data, _):
    if not os.path.islink(os.path.join(root, path)):
        os.chmod(os.path.join(root, path), 0o700 + len(data) % 8)


def _give(root, path, data, _):
    # Only root gives anything away; for anybody else it stays with whom it is.
    owner = len(data) if os.geteuid() == 0 else -1
    os.chown(os.path.join(root, path), owner, -1, follow_symlinks=False)


def _pipe(root, path, _, __):
    os.mkfifo(os.path.join(root, path))


def _touch(root, path, _, __):
    os.utime(os.path.join(root, path), follow_symlinks=False)


_OPENING = (_write, _append, _hidden, _mapped)
_ONCE = (
    _hidden,
    _mapped,
    _remove,
    _rename,
    _swap,
    _out_and_in,
    _link,
    _point,
    _mode,
    _give,
    _pipe,
    _touch,
    _append,
)
DEEDS = st.sampled_from([*_ONCE, _write, _write, _folder, _folder])
STEPS = st.lists(
    st.lists(st.tuples(DEEDS, PATHS, DATA, PATHS), min_size=1, max_size=8), min_size=1, max_size=4
)


@settings(max_examples=40)
@given(before=st.lists(st.tuples(DEEDS, PATHS, DATA, PATHS), max_size=12), steps=STEPS)
def test_all_ways_of_looking_tell_the_same(before, steps):
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(_compare(Rig(place), before, steps, watch={"watch": True}, scan={"watch": False}))


@settings(max_examples=6)
@given(before=st.lists(st.tuples(DEEDS, PATHS, DATA, PATHS), max_size=12), steps=STEPS)
def test_several_processes_tell_the_same(before, steps):
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(_compare(Rig(place), before, steps, crew={"watch": False, "crew_from": 0}))


async def _compare(rig, before, steps, **ways):
    root = os.fsencode(rig.root)
    _act(root, before)
    captures = {name: rig.capture(name, **options) for name, options in ways.items()}
    for name, capture in captures.items():
        assert (await capture.baseline()).notes == [], name
    try:
        for step in steps:
            was = snapshot(root)
            _act(root, step)
            expected = differences(was, snapshot(root))
            for name, capture in captures.items():
                changes = await capture.after()
                assert told(changes) == expected, name
                assert changes.notes == []
                assert all(held.sha256 in rig.memory.synced for held in _held(changes) if held.sha256)
        for name, capture in captures.items():
            assert told(await capture.scan()) == {}, name
    finally:
        for capture in captures.values():
            await capture.close()


def _act(root, deeds):
    for deed, path, data, other in deeds:
        # Opening a pipe would wait for somebody at its other end.
        if not stat.S_ISFIFO(_mode_of(os.path.join(root, path))) or deed not in _OPENING:
            with contextlib.suppress(OSError, ValueError):
                deed(root, path, data, other)
        outside = root + b".outside"
        if os.path.lexists(outside):
            _remove(b"", outside, b"", b"")


def _mode_of(path):
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0


def _held(changes):
    return [held for change in changes.paths for held in (change.before, change.after)]
