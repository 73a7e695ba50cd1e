"""The scan: which entries of known folders differ from how they were known. Stands alone, on the stdlib.

The daemon imports it, and runs it as a program of its own to scan with two processes: no process with
threads is ever forked. Everything is opened relative to the folder above it, links are never followed and
mount points never crossed. The depth of a tree costs neither recursion nor descriptors.
"""

from __future__ import annotations

import errno
import marshal
import os
import stat
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import IO, Any, NamedTuple

COLUMNS = 5
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_HELD = 64
_SLICE = 8192
# Overlay file systems use the highest bit of an inode's number, which no column has.
_INODE = (1 << 63) - 1
_ENCODING = sys.getfilesystemencoding()

Look = Callable[[bytes], os.stat_result]
Own = tuple[int, int, int, int, int]
Mark = tuple[int, int, int, int, int]


class MovedError(OSError):
    """A folder on the way is not where it was a moment ago."""


class Known(NamedTuple):
    """A folder as it was: its own mark, whether that mark can be trusted, and what lies in it but folders.

    `names` has a `/` behind each name, `marks` five numbers a name.
    """

    own: Own
    settled: bool
    names: bytes
    marks: array[int]


class Difference(NamedTuple):
    """How a folder differs: changed and new names, names gone, and its folders where it was listed.

    `error` is the number of what the system said when the folder could not be opened or listed.
    """

    number: int
    own: Own | None
    altered: list[bytes]
    gone: list[bytes]
    folders: list[bytes] | None
    error: int = 0


class Step(NamedTuple):
    """A folder on a scan's way, parents first; one that is not to be looked at is only passed through."""

    number: int
    depth: int
    name: bytes
    look: bool


class Way:
    """The folders from a root down to where a walk stands; only the last of them are held open."""

    def __init__(self, root: int) -> None:
        self._fds = [os.dup(root)]
        self._names: list[bytes] = [b""]
        self._marks = [_identity(os.fstat(root))]

    @property
    def depth(self) -> int:
        """How far below the root the walk stands."""
        return len(self._fds) - 1

    @property
    def fd(self) -> int:
        """The open folder where the walk stands."""
        return self._fds[-1]

    def down(self, name: bytes) -> os.stat_result:
        """Enters a folder of this one; raises OSError."""
        handle = os.open(name, FOLDER, dir_fd=self._fds[-1])
        try:
            found = os.fstat(handle)
        except BaseException:
            os.close(handle)
            raise
        self._fds.append(handle)
        self._names.append(name)
        self._marks.append(_identity(found))
        # The root stays open; of the others only the last few.
        far = len(self._fds) - 1 - _HELD
        if far > 0 and self._fds[far] >= 0:
            os.close(self._fds[far])
            self._fds[far] = -1
        return found

    def up(self, depth: int) -> None:
        """Climbs to a depth above.

        Raises MovedError when the folders there are others by now; the walk then stands further up, in the
        nearest one that is still held open.
        """
        while self.depth > depth:
            if self._fds[-2] < 0:
                try:
                    self._fds[-2] = self._above(self.depth - 1)
                except MovedError:
                    self._pop()
                    while self.fd < 0:
                        self._pop()
                    raise
            self._pop()

    def close(self) -> None:
        """Lets go of every folder."""
        for handle in self._fds:
            if handle >= 0:
                os.close(handle)
        self._fds.clear()

    def _pop(self) -> None:
        handle = self._fds.pop()
        if handle >= 0:
            os.close(handle)
        self._names.pop()
        self._marks.pop()

    def _above(self, depth: int) -> int:
        try:
            return _checked(os.open(b"..", FOLDER, dir_fd=self._fds[-1]), self._marks[depth])
        except OSError:
            return self._again(depth)

    def _again(self, depth: int) -> int:
        here = os.dup(self._fds[0])
        for level in range(1, depth + 1):
            try:
                below = os.open(self._names[level], FOLDER, dir_fd=here)
            except OSError as error:
                raise MovedError(*error.args) from None
            finally:
                os.close(here)
            here = _checked(below, self._marks[level])
        return here


def own_mark(found: os.stat_result) -> Own:
    """What tells that a folder's entry and names are as they were."""
    return found.st_mode, found.st_ino & _INODE, found.st_dev & _INODE, found.st_mtime_ns, found.st_ctime_ns


def mark(found: os.stat_result) -> Mark:
    """What tells that something other than a folder is as it was."""
    return found.st_mode, found.st_ino & _INODE, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def entries(folder: int) -> Iterator[tuple[bytes, os.stat_result | None]]:
    """What lies in an open folder, one by one: a name with its stat, or with None for a folder."""
    with os.scandir(folder) as listed:
        for entry in listed:
            name = entry.name.encode(_ENCODING, "surrogateescape")
            if entry.is_dir(follow_symlinks=False):
                yield name, None
                continue
            try:
                found = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            yield name, None if stat.S_ISDIR(found.st_mode) else found


def scan(
    root: int, steps: Sequence[Step], known: Callable[[int], Known], *, alone: bool = False
) -> Iterator[Difference]:
    """How folders differ from what is known of them; those that do not are passed over in silence.

    A process that does nothing else is `alone`: its working folder may move along, which is faster.
    """
    way = Way(root)
    lost = 0
    device = os.fstat(root).st_dev
    try:
        for number, depth, name, look in steps:
            if lost and depth > lost:
                continue
            lost = 0
            try:
                found = _enter(way, depth, name)
                # Something was mounted over a folder: what it hides can't be looked at.
                if found.st_dev != device:
                    raise MovedError(errno.EXDEV, "mounted over")
                difference = compare(way.fd, number, known(number), alone=alone) if look else None
            except OSError as error:
                lost = max(depth, 1)
                difference = Difference(number, None, [], [], None, error.errno or errno.EIO)
            if difference is not None:
                yield difference
    finally:
        way.close()


def compare(folder: int, number: int, known: Known, *, alone: bool = False) -> Difference | None:
    """How an open folder differs from what is known of it; None when it does not."""
    own = own_mark(os.fstat(folder))
    if own != known.own or not known.settled:
        return _listed(folder, number, known, own)
    altered: list[bytes] = []
    gone: list[bytes] = []
    names = known.names.split(b"/")
    names.pop()
    look: Look = os.lstat if alone else partial(os.stat, dir_fd=folder, follow_symlinks=False)
    if alone:
        os.fchdir(folder)
    for start in range(0, len(names), _SLICE):
        part = names[start : start + _SLICE]
        _compare_part(look, part, known.marks[start * COLUMNS : (start + _SLICE) * COLUMNS], altered, gone)
    return Difference(number, own, altered, gone, None) if altered or gone else None


def serve(root: int, source: IO[bytes], target: IO[bytes]) -> None:
    """Answers the daemon until it closes the pipe: `set` and `steps` tell what is known, `scan` asks."""
    folders: dict[int, Known] = {}
    steps: list[Step] = []
    while (message := receive(source)) is not None:
        if message[0] == "set":
            number, own, settled, names, marks = message[1:]
            folders[number] = Known(own, settled, names, array("q", marks))
        elif message[0] == "steps":
            steps = [Step(*step) for step in message[1]]
            kept = {step.number for step in steps}
            folders = {number: held for number, held in folders.items() if number in kept}
        else:
            for difference in scan(root, steps, folders.__getitem__, alone=True):
                send(target, tuple(difference))
            send(target, ("done",))
            target.flush()


def send(target: IO[bytes], message: Any) -> None:
    """Writes one message to a pipe."""
    data = marshal.dumps(message)
    target.write(len(data).to_bytes(8, "little") + data)


def receive(source: IO[bytes]) -> Any:
    """Reads one message from a pipe; None also when the other end is gone."""
    length = source.read(8)
    if len(length) < 8:
        return None
    return marshal.loads(source.read(int.from_bytes(length, "little")))  # noqa: S302 - from our own process


def _compare_part(
    look: Look, names: list[bytes], marks: array[int], altered: list[bytes], gone: list[bytes]
) -> None:
    flat: list[int] = []
    missing: set[int] = set()
    for name in names:
        try:
            s = look(name)
            flat += (s.st_mode, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
        except OSError:
            missing.add(len(flat) // COLUMNS)
            flat += (0, 0, 0, 0, 0)
    found = _packed(flat)
    if found == marks:
        return
    for index, name in enumerate(names):
        if index in missing:
            gone.append(name)
        elif found[index * COLUMNS : (index + 1) * COLUMNS] != marks[index * COLUMNS : (index + 1) * COLUMNS]:
            altered.append(name)


def _packed(flat: list[int]) -> array[int]:
    try:
        return array("q", flat)
    except OverflowError:
        return array("q", [number & _INODE if number > _INODE else number for number in flat])


def _listed(folder: int, number: int, known: Known, own: Own) -> Difference:
    names = known.names.split(b"/")
    names.pop()
    before = {name: index for index, name in enumerate(names)}
    altered, folders, marks = [], [], known.marks
    for name, found in entries(folder):
        if found is None:
            folders.append(name)
            continue
        at = before.pop(name, -1)
        if at < 0 or tuple(marks[at * COLUMNS : (at + 1) * COLUMNS]) != mark(found):
            altered.append(name)
    return Difference(number, own, altered, list(before), folders)


def _enter(way: Way, depth: int, name: bytes) -> os.stat_result:
    if depth == 0:
        way.up(0)
        return os.fstat(way.fd)
    way.up(depth - 1)
    if way.depth < depth - 1:
        raise MovedError(errno.ENOENT, "a folder above is not where it was")
    return way.down(name)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _checked(handle: int, expected: tuple[int, int]) -> int:
    if _identity(os.fstat(handle)) == expected:
        return handle
    os.close(handle)
    raise MovedError(errno.ENOENT, "not where it was")


if __name__ == "__main__":
    import gc

    gc.disable()
    serve(int(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)
