"""The watcher: inotify marks what may differ, so that a look need not scan.

It misses nothing that goes through a name inside the root on this machine. It does not see: stores through
a mapping that is still open, writes through a name outside of the root that is the same file (those are
looked at each time), and what another machine does on a network file system (that is not watched at all).
A scan at intervals is the arbiter.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from takeback_acts.files.capture.leftout import LeftOut
from takeback_acts.files.capture.node import Node
from takeback_acts.files.capture.row import Source
from takeback_acts.files.capture.tour import Tour

if TYPE_CHECKING:
    from inotify_simple import INotify  # type: ignore[import-untyped]

MODIFY, ATTRIB, CLOSE_WRITE, MOVED_FROM, MOVED_TO = 0x2, 0x4, 0x8, 0x40, 0x80
CREATE, DELETE = 0x100, 0x200
UNMOUNT, OVERFLOW, IGNORED, IS_DIR, ONLY_DIR = 0x2000, 0x4000, 0x8000, 0x40000000, 0x01000000
_MASK = MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | ONLY_DIR
_REMOTE = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "virtiofs", "vboxsf"}
_PAUSE = 0.02
# Denied folders are tried all the same: they may have been opened meanwhile.
_ENTERED = (Source.NONE, Source.DENIED, Source.FAILED)


class WatchError(OSError):
    """The root can't be watched, or no longer; the words say why."""


class Watched:
    """A folder that is watched.

    `names` in it may differ; with `whole` all below may, with `mode` its own entry.
    """

    __slots__ = ("below", "mode", "name", "names", "parent", "wd", "whole")

    def __init__(self, parent: Watched | None, name: bytes) -> None:
        self.parent, self.name = parent, name
        self.below: dict[bytes, Watched] = {}
        self.wd = -1
        self.names: set[bytes] = set()
        self.whole = self.mode = False

    @property
    def place(self) -> tuple[Watched | None, bytes]:
        """The folder above, and the name in it."""
        return self.parent, self.name


class Dirty(NamedTuple):
    """What may differ in a known folder."""

    node: Node
    names: set[bytes]
    whole: bool
    mode: bool


class Watch:
    """Watches all folders of a root but those left out. `lost` says why it is of no use any more."""

    def __init__(self, root: int, left_out: LeftOut) -> None:
        self._root = root
        self._left_out = left_out
        self._device = os.fstat(root).st_dev
        self._inotify = _open(self._device)
        self._top = Watched(None, b"")
        self._by_wd: dict[int, Watched] = {}
        self._dirty: set[Watched] = set()
        self._lock = threading.Lock()
        self._stop, self._stopper = os.pipe()
        self._thread = threading.Thread(target=self._follow, name="takeback-watch", daemon=True)
        self.lost = ""

    def start(self, known: Node | None) -> None:
        """Watches every folder there, but none that the baseline leaves out; raises WatchError."""
        with self._lock:
            self._cover(self._top, known)
        if self.lost:
            raise WatchError(errno.ENOSPC, self.lost)
        self._thread.start()

    def dirty(self, top: Node) -> list[Dirty]:
        """What may differ since it was asked last, all that happened before this call included."""
        with self._lock:
            self._drain()
            marked, self._dirty = self._dirty, set()
            found = []
            for watched in marked:
                names, whole, mode = watched.names, watched.whole, watched.mode
                watched.names, watched.whole, watched.mode = set(), False, False
                node = _node(top, watched)
                # A folder that is not known yet is a name that differs in one that is.
                if node is not None:
                    found.append(Dirty(node, names, whole, mode))
            return found

    def enter(self, node: Node) -> None:
        """Watches a folder that was passed by so far; what happened in it meanwhile is asked for."""
        parts = node.path().split(b"/")
        with self._lock:
            watched: Watched | None = self._top
            for part in parts[:-1]:
                watched = watched.below.get(part) if watched is not None else None
            if watched is not None:
                self._add_below(watched, parts[-1])

    def close(self) -> None:
        """Ends all watching."""
        os.close(self._stopper)
        if self._thread.ident is not None:
            self._thread.join()
        os.close(self._stop)
        self._inotify.close()

    def _follow(self) -> None:
        poll = select.poll()
        poll.register(self._inotify, select.POLLIN)
        poll.register(self._stop, select.POLLIN | select.POLLHUP)
        while not self.lost:
            if any(handle == self._stop for handle, _ in poll.poll()):
                return
            # The kernel folds like events into one while they wait.
            time.sleep(_PAUSE)
            with self._lock:
                self._drain()

    def _drain(self) -> None:
        while not self.lost and (events := self._inotify.read(timeout=0)):
            for wd, mask, _, name in events:
                if not self.lost:
                    self._event(wd, mask, os.fsencode(name))

    def _event(self, wd: int, mask: int, name: bytes) -> None:
        if mask & OVERFLOW:
            self.lost = "overflow"
            return
        watched = self._by_wd.get(wd)
        if watched is None:
            return
        if mask & UNMOUNT:
            self.lost = "unmounted"
        elif mask & IGNORED:
            del self._by_wd[wd]
        elif name:
            watched.names.add(name)
            self._dirty.add(watched)
            if mask & IS_DIR:
                self._folder(watched, mask, name)
        elif mask & ATTRIB:
            watched.mode = True
            self._dirty.add(watched)

    def _folder(self, watched: Watched, mask: int, name: bytes) -> None:
        if mask & (CREATE | DELETE | MOVED_FROM | MOVED_TO):
            gone = watched.below.pop(name, None)
            orphans = self._forget(gone) if gone is not None else set()
            if mask & (CREATE | MOVED_TO) and not self._left_out.by_name(name):
                self._add_below(watched, name)
            self._release(orphans)

    def _add_below(self, watched: Watched, name: bytes) -> None:
        below = Watched(watched, name)
        watched.below[name] = below
        below.whole = True
        self._dirty.add(below)
        self._cover(below, None)

    def _forget(self, top: Watched) -> set[int]:
        found, stack = set(), [top]
        while stack:
            watched = stack.pop()
            self._dirty.discard(watched)
            if self._by_wd.get(watched.wd) is watched:
                del self._by_wd[watched.wd]
                found.add(watched.wd)
            stack.extend(watched.below.values())
        return found

    def _release(self, orphans: set[int]) -> None:
        for wd in orphans - self._by_wd.keys():
            with contextlib.suppress(OSError):
                self._inotify.rm_watch(wd)

    def _cover(self, top: Watched, known: Node | None) -> None:
        tour = Tour(self._root, self._top)
        stack: list[tuple[Watched, Node | None]] = [(top, known)]
        try:
            while stack and not self.lost:
                watched, node = stack.pop()
                try:
                    stack += self._add(tour.to(watched), watched, node)
                except OSError as error:
                    if error.errno in (errno.ENOSPC, errno.ENOMEM):
                        self.lost = "limit"
        finally:
            tour.close()

    def _add(self, folder: int, watched: Watched, node: Node | None) -> list[tuple[Watched, Node | None]]:
        if os.fstat(folder).st_dev != self._device or (node is None and self._leaves_out(folder, watched)):
            return []
        watched.wd = self._inotify.add_watch(f"/proc/self/fd/{folder}", _MASK)
        self._by_wd[watched.wd] = watched
        found = []
        for name in _folders(folder):
            child = node.children.get(name) if node is not None else None
            left = self._left_out.by_name(name) if child is None else child.left not in _ENTERED
            if not left:
                found.append((watched.below.setdefault(name, Watched(watched, name)), child))
        return found

    def _leaves_out(self, folder: int, watched: Watched) -> bool:
        return watched.parent is not None and self._left_out.by_marker(folder, watched.name)


def _node(top: Node, watched: Watched) -> Node | None:
    names = []
    here: Watched | None = watched
    while here is not None and here.parent is not None:
        names.append(here.name)
        here = here.parent
    node: Node | None = top
    for name in reversed(names):
        node = node.children.get(name) if node is not None else None
    return node if node is not None and node.left == Source.NONE else None


def _folders(folder: int) -> list[bytes]:
    with os.scandir(folder) as listed:
        return [os.fsencode(entry.name) for entry in listed if entry.is_dir(follow_symlinks=False)]


def _open(device: int) -> INotify:
    if sys.platform != "linux":
        raise WatchError(errno.ENOSYS, "not Linux")
    from inotify_simple import INotify

    type_ = _file_system(f"{os.major(device)}:{os.minor(device)}")
    if type_ in _REMOTE or type_.startswith("fuse."):
        raise WatchError(errno.ENOTSUP, f"the file system {type_}")
    try:
        return INotify(nonblocking=True)
    except OSError as error:
        raise WatchError(error.errno or errno.EMFILE, "limit") from None


def _file_system(device: str) -> str:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            words = line.split()
            if words[2] == device:
                return words[words.index("-") + 1]
    return ""
