"""Opening beneath: the one way from a path to an open folder, part by part and through no link.

Every part is opened relative to the folder before it with O_NOFOLLOW, so that a link swapped in between a
look and an open leads nowhere. takeback's own home is known by its inodes, whatever name leads there.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from takeback.errors import RefusedError
from takeback_acts.files import failures
from takeback_acts.files.paths import join, shown, split

if TYPE_CHECKING:
    from takeback_acts.files.passages import Passages

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A folder on the way need only be passable, not readable; macOS has no O_PATH.
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Home:
    """The folders that nobody reaches through files: takeback's own, by inode and, not yet made, by path."""

    def __init__(self, folders: Iterable[str | os.PathLike[str]]) -> None:
        self._paths = {os.fsencode(os.path.realpath(folder)) for folder in folders}
        self._inside = tuple(join(own, b"") for own in self._paths)
        found = [os.stat(path) for path in self._paths if os.path.exists(path)]
        self._inodes = {(about.st_dev, about.st_ino) for about in found}

    def check(self, found: os.stat_result, path: bytes) -> None:
        """Raises RefusedError `files.home` when this inode is a folder of the home."""
        if (found.st_dev, found.st_ino) in self._inodes:
            raise _home(path)

    def check_path(self, path: bytes) -> None:
        """Raises RefusedError `files.home` when a path is a folder of the home, or lies in one."""
        if path in self._paths or path.startswith(self._inside):
            raise _home(path)

    def check_around(self, path: bytes) -> None:
        """Raises RefusedError `files.home` when the home lies in this folder, or is it."""
        around = path.rstrip(b"/") + b"/"
        if any((own + b"/").startswith(around) for own in self._paths):
            raise _home(path)


class Spot(NamedTuple):
    """A name in an open folder: `folder` is its descriptor, `path` the canonical path for words and log."""

    folder: int
    name: bytes
    path: bytes

    def look(self) -> os.stat_result | None:
        """What lies there, a link itself and not its target; None when nothing does."""
        return look(self.folder, self.name)

    def beside(self, name: bytes) -> Spot:
        """Another name in the same folder."""
        return Spot(self.folder, name, split(self.path)[0].rstrip(b"/") + b"/" + name)


def look(folder: int, name: bytes) -> os.stat_result | None:
    """What lies at a name in an open folder, a link itself and not its target; None when nothing does."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


class Folders:
    """Folders that stay open until the end of a `with`, each opened once for all the names in it.

    `leading` are those that were passed on the way down, themselves included, each with its stat. With
    `passages` a folder that is shut is opened until then.
    """

    def __init__(self, home: Home, passages: Passages | None = None) -> None:
        self.home = home
        self._passages = passages
        self.leading: dict[bytes, os.stat_result] = {}
        self._open: dict[bytes, int] = {}

    def __enter__(self) -> Folders:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._open.values():
            os.close(handle)
        if self._passages is not None:
            self._passages.close()

    def spot(self, path: bytes) -> Spot:
        """The place of a canonical path, whether or not the path itself exists.

        Raises RefusedError `files.link`, `files.home`, NotFoundError `files.absent`, ConflictError
        `files.not_folder`.
        """
        self.home.check_path(path)
        parent, name = split(path)
        handle = self._open.get(parent)
        if handle is None:
            handle = open_folder(parent, self.home, self.leading, self._passages)
            self._open[parent] = handle
        found = look(handle, name) if name else os.fstat(handle)
        if found is not None and stat.S_ISDIR(found.st_mode):
            self.home.check(found, path)
        return Spot(handle, name or b".", path)


@contextmanager
def spot(path: bytes, home: Home) -> Iterator[Spot]:
    """The place of one canonical path: its folder is open inside; raises what `Folders.spot` raises."""
    with Folders(home) as folders:
        yield folders.spot(path)


def open_folder(
    path: bytes,
    home: Home,
    leading: dict[bytes, os.stat_result] | None = None,
    passages: Passages | None = None,
) -> int:
    """A descriptor of the folder at a canonical path; raises what `spot` raises.

    Notes in `leading` the folders on the way, with the last one, and opens those that are shut by `passages`.
    """
    home.check_path(path)
    parts = [part for part in path.split(b"/") if part]
    here, place = os.open(b"/", _STEP if parts else _FOLDER), b"/"
    try:
        if leading is not None and place not in leading:
            leading[place] = os.fstat(here)
        for depth, part in enumerate(parts, 1):
            if passages is not None:
                _open_up(here, part, passages)
            step = _enter(here, part, path, _FOLDER if depth == len(parts) else _STEP)
            os.close(here)
            here, place, found = step, join(place, part), os.fstat(step)
            home.check(found, path)
            if leading is not None:
                leading[place] = found
    except BaseException:
        os.close(here)
        raise
    return here


def leading(path: bytes, ends: Collection[int] = ()) -> list[tuple[bytes, os.stat_result]]:
    """A folder and the ones above it, from the root down to where there is none, each with its stat.

    It ends as well where the system says one of `ends`; raises OSError else.
    """
    found, here, place = [], os.open(b"/", _STEP), b"/"
    try:
        found.append((place, os.fstat(here)))
        for part in (part for part in path.split(b"/") if part):
            try:
                step = os.open(part, _STEP, dir_fd=here)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMLINK, *ends):
                    raise
                break
            os.close(here)
            here, place = step, join(place, part)
            found.append((place, os.fstat(here)))
    finally:
        os.close(here)
    return found


def open_within(folder: int, name: bytes, path: bytes, home: Home) -> int:
    """A descriptor of a folder that is an entry of an open one."""
    here = _enter(folder, name, path, _FOLDER)
    try:
        home.check(os.fstat(here), path)
    except BaseException:
        os.close(here)
        raise
    return here


def open_file(folder: int, name: bytes, path: bytes) -> int:
    """A descriptor for reading of a regular file in an open folder, never of what could block or act.

    Raises RefusedError `files.special`, `files.link`, ConflictError `files.is_folder`.
    """
    with failures.reported(path):
        _check_regular(os.stat(name, dir_fd=folder, follow_symlinks=False), path)
        handle = os.open(name, _FILE, dir_fd=folder)
    try:
        _check_regular(os.fstat(handle), path)
    except BaseException:
        os.close(handle)
        raise
    return handle


def set_mode(spot: Spot, found: os.stat_result, mode: int) -> None:
    """Sets the mode of the entry with this stat, and of no link that is put there meanwhile.

    Raises ConflictError `files.changed`, OSError.
    """
    if sys.platform != "linux":
        os.chmod(spot.name, mode, dir_fd=spot.folder, follow_symlinks=False)
        return
    handle = os.open(spot.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=spot.folder)
    try:
        about = os.fstat(handle)
        if (about.st_dev, about.st_ino) != (found.st_dev, found.st_ino):
            raise failures.changed(spot.path)
        # What can't be read is opened all the same so, but such a handle takes no mode itself.
        os.chmod(b"/proc/self/fd/%d" % handle, mode)
    finally:
        os.close(handle)


def _open_up(folder: int, name: bytes, passages: Passages) -> None:
    # Why it can't be is what entering it says.
    with suppress(OSError):
        passages.open(folder, name)


def _enter(folder: int, name: bytes, path: bytes, flags: int) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EMLINK):
            found = look(folder, name)
            if found is not None and stat.S_ISLNK(found.st_mode):
                raise failures.linked(path) from error
        raise failures.failure(path, error) from error


def _check_regular(found: os.stat_result, path: bytes) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise failures.linked(path)
    if stat.S_ISDIR(found.st_mode):
        raise failures.is_folder(path)
    if not stat.S_ISREG(found.st_mode):
        raise failures.special(path)


def _home(path: bytes) -> RefusedError:
    return RefusedError(
        "files.home",
        f"{shown(path)} belongs to takeback itself, or holds what does",
        "takeback's own folders can't be reached through files.",
    )
