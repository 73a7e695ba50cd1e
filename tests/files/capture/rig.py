"""What the tests of capture share: a store in memory, a root with its captures, and a plain oracle."""

import hashlib
import os
import stat
from pathlib import Path

from takeback.errors import NotFoundError
from takeback_acts.files.beneath import Home
from takeback_acts.files.capture.capture import Capture
from takeback_acts.files.capture.engine import Options


class Memory:
    """Blobs in a dictionary; `synced` are those that a sync made durable."""

    def __init__(self):
        self.blobs = {}
        self.synced = set()

    def put(self, data):
        sha256 = hashlib.sha256(data).hexdigest()
        self.blobs[sha256] = data
        return sha256

    def put_file(self, handle, size):
        parts = []
        while part := os.read(handle, 1 << 20):
            parts.append(part)
        return self.put(b"".join(parts))

    def get(self, sha256):
        if sha256 not in self.blobs:
            raise NotFoundError("files.blob_missing", "gone")
        return self.blobs[sha256]

    def sync(self):
        self.synced.update(self.blobs)


class Rig:
    """A root, a store, and captures of it."""

    def __init__(self, place):
        self.root = Path(place) / "root"
        self.root.mkdir(exist_ok=True)
        self.state = Path(place) / "state"
        self.memory = Memory()

    def capture(self, name="one", **options):
        options.setdefault("watch", False)
        return Capture(
            os.fsencode(self.root), self.memory, self.state / name, Home([self.state]), Options(**options)
        )

    def write(self, name, data=b"x"):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def bytes_before(self, changes, name):
        return self.memory.get(only(changes, name).before.sha256)


def only(changes, name):
    """The one change of a path."""
    (found,) = [change for change in changes.paths if change.path == os.fsencode(name)]
    return found


def told(changes):
    """What a look told, in a form that two looks can be compared by."""
    told = {
        change.path: (str(change.what), _brief(change.before), _brief(change.after))
        for change in changes.paths
    }
    assert len(told) == len(changes.paths)
    return told


def whats(changes):
    """The word for each path that differs."""
    return {os.fsdecode(change.path): str(change.what) for change in changes.paths}


def snapshot(root):
    """Everything in a folder, found by plain means."""
    found = {b"": _look(os.fsencode(root))}
    for here, folders, files in os.walk(os.fsencode(root)):
        for name in [*folders, *files]:
            path = os.path.join(here, name)
            found[os.path.relpath(path, os.fsencode(root))] = _look(path)
    return found


def differences(before, after):
    """What `told` must be between two snapshots."""
    absent = ("absent", 0, "", b"", -1, -1)
    found = {}
    for path in {*before, *after}:
        was, now = before.get(path, absent), after.get(path, absent)
        if was != now:
            found[path] = (_word(was, now), was, now)
    return found


def _word(was, now):
    if was[0] == "absent":
        return "created"
    if now[0] == "absent":
        return "deleted"
    if was[0] != now[0]:
        return "type"
    if was[2:4] != now[2:4]:
        return "content"
    return "owner" if was[1] == now[1] else "mode"


def _brief(held):
    return held.kind, held.mode, held.sha256, held.target, held.uid, held.gid


def _look(path):
    found = os.lstat(path)
    owner = found.st_uid, found.st_gid
    if stat.S_ISREG(found.st_mode):
        with open(path, "rb") as file:
            return "file", found.st_mode, hashlib.sha256(file.read()).hexdigest(), b"", *owner
    if stat.S_ISLNK(found.st_mode):
        return "link", found.st_mode, "", os.readlink(path), *owner
    return ("dir" if stat.S_ISDIR(found.st_mode) else "special"), found.st_mode, "", b"", *owner
