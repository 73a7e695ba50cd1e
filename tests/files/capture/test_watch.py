"""The watcher, and what happens when it can't see."""

import os

import pytest

from takeback_acts.files.capture import watch
from takeback_acts.files.capture.leftout import LeftOut
from takeback_acts.files.capture.node import Node
from takeback_acts.files.capture.watch import Watch
from tests.files.capture.rig import Rig, whats

pytestmark = pytest.mark.anyio


@pytest.fixture
def rig(tmp_path):
    rig = Rig(tmp_path)
    rig.write("folder/file", b"one")
    return rig


async def test_a_look_with_the_watcher_opens_only_what_changed(rig):
    capture = rig.capture(watch=True)
    await capture.baseline()
    rig.write("folder/file", b"two")
    changes = await capture.after()
    assert (changes.by, whats(changes)) == ("watch", {"folder/file": "content"})
    assert (await capture.after()).paths == []
    await capture.close()


async def test_what_happens_in_a_folder_made_since_is_seen(rig):
    capture = rig.capture(watch=True)
    await capture.baseline()
    rig.write("new/deep/er/file", b"one")
    await capture.after()
    rig.write("new/deep/er/file", b"two")
    changes = await capture.after()
    assert (changes.by, whats(changes)) == ("watch", {"new/deep/er/file": "content"})
    await capture.close()


async def test_after_an_overflow_the_whole_root_is_scanned_and_watched_anew(rig, monkeypatch):
    capture = rig.capture(watch=True)
    await capture.baseline()
    engine = capture._engine
    # What the kernel sends when its queue is full.
    with engine.senses.watch._lock:
        rig.write("folder/file", b"two")
        rig.write("new/file", b"new")
        engine.senses.watch._event(-1, watch.OVERFLOW, b"")
    changes = await capture.after()
    assert (changes.by, changes.notes) == ("scan", ["watch.lost: overflow"])
    assert whats(changes) == {"folder/file": "content", "new": "created", "new/file": "created"}
    rig.write("new/file", b"again")
    changes = await capture.after()
    assert (changes.by, whats(changes)) == ("watch", {"new/file": "content"})
    await capture.close()


async def test_a_real_overflow_loses_nothing(rig):
    with open("/proc/sys/fs/inotify/max_queued_events", encoding="ascii") as file:
        most = int(file.read())
    capture = rig.capture(watch=True)
    await capture.baseline()
    with capture._engine.senses.watch._lock:
        for number in range(most // 3 + 10):
            os.close(os.open(rig.root / "folder" / f"{number % 500}", os.O_CREAT | os.O_WRONLY))
            os.utime(rig.root / "folder" / f"{number % 500}")
            os.unlink(rig.root / "folder" / f"{number % 500}")
        rig.write("folder/last", b"last")
    changes = await capture.after()
    assert changes.notes == ["watch.lost: overflow"]
    assert whats(changes) == {"folder/last": "created"}
    await capture.close()


async def test_no_more_watches_means_scans_and_is_said(rig, monkeypatch):
    def full(self, path, mask):
        raise OSError(28, "no more watches")

    monkeypatch.setattr("inotify_simple.INotify.add_watch", full)
    capture = rig.capture(watch=True)
    assert (await capture.baseline()).notes == ["watch.off: limit"]
    rig.write("folder/file", b"two")
    changes = await capture.after()
    assert (changes.by, whats(changes)) == ("scan", {"folder/file": "content"})
    await capture.close()


async def test_a_root_elsewhere_in_the_network_is_not_watched(rig, monkeypatch):
    monkeypatch.setattr(watch, "_file_system", lambda device: "nfs4")
    capture = rig.capture(watch=True)
    assert (await capture.baseline()).notes == ["watch.off: the file system nfs4"]
    await capture.close()


async def test_the_scan_is_the_arbiter_at_intervals(rig):
    capture = rig.capture(watch=True, scan_every=0.0)
    await capture.baseline()
    assert (await capture.after()).by == "scan"
    await capture.close()


def test_a_folder_moved_out_is_watched_no_more(rig, tmp_path):
    root = os.open(rig.root, os.O_RDONLY)
    watcher = Watch(root, LeftOut())
    watcher.start(None)
    (rig.root / "folder").rename(tmp_path / "outside")
    top = Node(None, b"")
    assert [dirty.names for dirty in watcher.dirty(top)] == [{b"folder"}]
    (tmp_path / "outside" / "file").write_bytes(b"two")
    assert watcher.dirty(top) == []
    watcher.close()
    os.close(root)
