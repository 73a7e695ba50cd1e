"""Staging: a wanted file, link or folder made whole and durable under another name first."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import itertools
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from takeback.durable import sync
from takeback_acts.files import beneath, renames
from takeback_acts.files.beneath import Home, Spot
from takeback_acts.files.capture.way import Way
from takeback_acts.files.links import Links
from takeback_acts.files.paths import join
from takeback_acts.files.states import ABSENT, State
from takeback_acts.files.supply import Supply
from takeback_acts.files.trees import Entry, Seen

T = TypeVar("T")

PART = b".part"
ASIDE = b".old"
_OURS = re.compile(rb"\.takeback-[0-9a-f]{16}(\.part|\.old)?")
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PORTION = 256
FEW = 16
_PROCESS = secrets.token_hex(4)
_count = itertools.count()
# A file without a name leaves nothing behind in a crash; macOS has no such thing, nor have all file systems.
_NAMELESS: int | None = getattr(os, "O_TMPFILE", None)


def fresh() -> str:
    """Sixteen hex digits that no other process or call gives; asking the system each time is slow."""
    return f"{_PROCESS}{next(_count) & 0xFFFFFFFF:08x}"


def temporary(spot: Spot) -> Spot:
    """A fresh name beside a place, recognisable as ours."""
    return spot.beside(b".takeback-" + fresh().encode())


def is_own(name: bytes) -> bool:
    """Whether a temporary name is one of this process, so that what lies there is about to go."""
    return name.startswith(b".takeback-" + _PROCESS.encode()) and is_temporary(name)


def is_temporary(name: bytes) -> bool:
    """Whether a name is one that `temporary` makes, or its PART or ASIDE."""
    return _OURS.fullmatch(name) is not None


def stage(temp: Spot, want: Seen, supply: Supply, home: Home, links: Links, *, durable: bool) -> None:
    """Makes what is wanted under the PART of a temporary name; not `durable` where `sync_all` follows.

    Files that were one are one again as far as `links` knows the others.

    Raises OSError, `files.blob_missing` and `files.blob_corrupt`.
    """
    part = temp.beside(temp.name + PART)
    if want.state.kind == "dir":
        _stage_folder(temp, part, want, supply, home, links, durable=durable)
    elif not links.join(want.state, part):
        _stage_plain(part, want.state, supply, durable=durable)
        links.note(want.state, part, temp, (part.name, temp.name), b"")


def finish(temp: Spot) -> None:
    """Gives what was staged its temporary name.

    It gets that only when it is whole and durable: what a crash leaves under PART is rubbish of ours.
    """
    renames.replace(temp.beside(temp.name + PART), temp)


def prepare(spot: Spot, state: State, supply: Supply) -> int | None:
    """A wanted file made whole and durable without a name, for `give_name`; None where there's no such thing.

    Raises what `stage` raises.
    """
    if _NAMELESS is None:
        return None
    try:
        handle = os.open(b".", _NAMELESS | os.O_RDWR | os.O_CLOEXEC, 0o600, dir_fd=spot.folder)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            return None
        raise
    try:
        _fill(handle, state, supply)
        sync(handle)
    except BaseException:
        os.close(handle)
        raise
    return handle


def give_name(handle: int, temp: Spot) -> bool:
    """Gives a prepared file a temporary name; False where the system has no way to."""
    try:
        os.link(b"/proc/self/fd/%d" % handle, temp.name, dst_dir_fd=temp.folder, follow_symlinks=True)
    except FileNotFoundError:
        return False
    return True


def carry_attributes(old: Spot, new: Spot, *, access: bool) -> None:
    """Gives a file the extended attributes of the one that it replaces; access lists only with `access`."""
    if sys.platform != "linux":
        return
    source = beneath.open_file(old.folder, old.name, old.path)
    try:
        names = os.listxattr(source)
        if names:
            target = beneath.open_file(new.folder, new.name, new.path)
            try:
                for name in names:
                    if access or not name.startswith("system."):
                        # Some attributes are for privileged processes only.
                        with contextlib.suppress(OSError):
                            os.setxattr(target, name, os.getxattr(source, name))
            finally:
                os.close(target)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
    finally:
        os.close(source)


def _fill(handle: int, state: State, supply: Supply) -> None:
    supply.write(state.sha256, handle)
    _dress(handle, state)


def _stage_plain(spot: Spot, state: State, supply: Supply, *, durable: bool) -> None:
    if state.kind == "link":
        os.symlink(state.target_bytes, spot.name, dir_fd=spot.folder)
        _dress_link(spot, state)
        return
    handle = os.open(spot.name, _CREATE, 0o600, dir_fd=spot.folder)
    try:
        _fill(handle, state, supply)
        if durable:
            sync(handle)
    finally:
        os.close(handle)


def _stage_folder(
    temp: Spot, spot: Spot, want: Seen, supply: Supply, home: Home, links: Links, *, durable: bool
) -> None:
    os.mkdir(spot.name, 0o700, dir_fd=spot.folder)
    handle = beneath.open_within(spot.folder, spot.name, spot.path, home)
    try:
        one_by_one = durable and len(want.entries) <= FEW
        builder = _Builder(handle, spot, temp, supply, home, links, durable=one_by_one)
        builder.build(want.entries)
        _dress(handle, want.state)
        if one_by_one:
            sync(handle)
        elif durable:
            _sync_file_system(handle)
    finally:
        os.close(handle)


class _Builder:
    """Fills an open folder; entries come parents first, so those that are not finished are a stack."""

    def __init__(
        self, folder: int, top: Spot, temp: Spot, supply: Supply, home: Home, links: Links, *, durable: bool
    ) -> None:
        self._way = Way(folder)
        self._top, self._names, self._links = top, (top.name, temp.name), links
        self._open: list[tuple[bytes, State]] = [(b"", ABSENT)]
        self._supply = supply
        self._home = home
        self._durable = durable

    def build(self, entries: Sequence[Entry]) -> None:
        try:
            for portion in portions(entries):
                self._supply.bring({entry.state.sha256 for entry in portion if entry.state.kind == "file"})
                for entry in portion:
                    self._make(entry)
            self._leave_to(b"")
        finally:
            self._way.close()

    def _make(self, entry: Entry) -> None:
        inner, _, name = entry.path.rpartition(b"/")
        self._leave_to(inner)
        spot = Spot(self._way.fd, name, join(self._top.path, entry.path))
        if entry.state.kind != "dir":
            if not self._links.join(entry.state, spot):
                _stage_plain(spot, entry.state, self._supply, durable=self._durable)
                self._links.note(entry.state, spot, self._top, self._names, entry.path)
            return
        os.mkdir(name, 0o700, dir_fd=spot.folder)
        self._home.check(self._way.down(name), spot.path)
        self._open.append((entry.path, entry.state))

    def _leave_to(self, inner: bytes) -> None:
        """Closes finished folders; a folder gets its mode and time last, since filling it changes both."""
        while self._open[-1][0] != inner:
            _, state = self._open.pop()
            _dress(self._way.fd, state)
            if self._durable:
                sync(self._way.fd)
            self._way.up(len(self._open) - 1)


def _dress(handle: int, state: State) -> None:
    """Owner, mode and time, in this order: a new owner clears bits of the mode."""
    found = os.fstat(handle)
    mode = state.mode
    wanted = (state.owner, state.group)
    if any(have != want != -1 for have, want in zip((found.st_uid, found.st_gid), wanted, strict=True)):
        try:
            os.fchown(handle, *wanted)
        except PermissionError:
            mode &= ~(stat.S_ISUID | stat.S_ISGID)  # such a bit must not speak for another owner
    os.fchmod(handle, mode)
    if state.mtime_ns:
        os.utime(handle, ns=(found.st_atime_ns, state.mtime_ns))


def _dress_link(spot: Spot, state: State) -> None:
    if state.owner != -1 and os.geteuid() == 0:
        os.chown(spot.name, state.owner, state.group, dir_fd=spot.folder, follow_symlinks=False)
    if state.mtime_ns:
        times = (state.mtime_ns, state.mtime_ns)
        with contextlib.suppress(NotImplementedError):
            os.utime(spot.name, ns=times, dir_fd=spot.folder, follow_symlinks=False)


def portions(things: Sequence[T]) -> Iterator[Sequence[T]]:
    """As many at a time as `Supply.bring` should fetch."""
    return (things[start : start + _PORTION] for start in range(0, len(things), _PORTION))


def sync_all(folders: Iterable[int]) -> None:
    """Makes all durable that was written around these open folders: one sync of each file system."""
    for folder in {os.fstat(folder).st_dev: folder for folder in folders}.values():
        _sync_file_system(folder)


def _sync_file_system(handle: int) -> None:
    if sys.platform != "linux":
        os.sync()
        return
    done: int = ctypes.CDLL(None, use_errno=True).syncfs(handle)
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
