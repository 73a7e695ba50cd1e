"""Repositories of git that a root holds: what is kept of them, and what they say a file's bytes are."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from takeback_acts.files.capture import gitindex, gitpack, gitprune, gitrefs
from takeback_acts.files.capture.gitindex import Index, IndexFormatError
from takeback_acts.files.capture.gitkeep import Keep, LinkError
from takeback_acts.files.capture.gitprune import Pruned
from takeback_acts.files.capture.intake import Taker, git_name
from takeback_acts.files.capture.way import FOLDER

_SHA256 = re.compile(rb"^\s*objectformat\s*=\s*sha256\s*$", re.IGNORECASE | re.MULTILINE)
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# git indexes no longer paths.
_LONGEST = 4096
# A file's name of objects that is longer has a hash of 32 bytes in it.
_LONG = 60


class Repository:
    """What git tracks below one folder, as far as the objects are kept."""

    def __init__(self, number: int, index: Index, sizes: dict[bytes, int]) -> None:
        self.number = number
        self._index = index
        self._sizes = sizes

    def beneath(self, prefix: bytes) -> Beneath | None:
        """The same, for the folder of this path; `prefix` is empty or ends with `/`."""
        return Beneath(self, prefix) if len(prefix) <= _LONGEST else None

    def tracks_in(self, prefix: bytes) -> bool:
        """Whether any tracked file lies in the folder of this path."""
        return any(path.startswith(prefix) for path in self._index.files)

    def expected(self, path: bytes, size: int) -> bytes | None:
        """The kept object of a path, when it has that size."""
        oid = self._index.files.get(path)
        return oid if oid is not None and self._sizes.get(oid) == size else None


class Beneath:
    """A repository as seen from a folder in it."""

    def __init__(self, repository: Repository, prefix: bytes) -> None:
        self.repository = repository
        self._prefix = prefix

    def expected(self, name: bytes, size: int) -> bytes | None:
        """The kept object of this size that git tracks a file of this folder as."""
        return self.repository.expected(self._prefix + name, size)

    def below(self, name: bytes) -> Beneath | None:
        """The same, from a folder of this folder."""
        return self.repository.beneath(self._prefix + name + b"/")

    def tracks_in(self, name: bytes) -> bool:
        """Whether any tracked file lies in a folder of this folder."""
        return self.repository.tracks_in(self._prefix + name + b"/")


class Repositories:
    """The kept objects of all repositories of a root, a numbered folder each. Calls block.

    `keeps` gives the number of an `objects` folder by device and inode; `refs` what references said last,
    by the work tree's path, and `fresh` those of repositories that a look came upon.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._keeps: dict[int, Keep] = {}
        self.numbers: dict[tuple[int, int], int] = {}
        self.refs: dict[bytes, dict[str, str]] = {}
        self.fresh: dict[bytes, dict[str, str]] = {}
        self.notes: list[str] = []

    def recall(self, meta: Mapping[str, Any]) -> None:
        """Takes over what lay on the shelf."""
        self.numbers = {(device, inode): number for device, inode, number in meta["keeps"]}
        self.refs = {bytes.fromhex(path): refs for path, refs in meta["refs"].items()}

    def settle(self, now: dict[bytes, dict[str, str]]) -> None:
        """Takes over what references say now; a repository without any is forgotten."""
        for path, refs in {**now, **self.fresh}.items():
            if refs:
                self.refs[path] = refs
            else:
                self.refs.pop(path, None)
        self.fresh.clear()

    def open(self, work: int, path: bytes) -> Repository | None:
        """What git tracks in an open folder that has a `.git`; None where it can't be told, with a note."""
        with _Folders() as folders:
            git_dir = folders.hold(gitrefs.git_dir_of(work))
            if git_dir is None:
                return None
            try:
                common = folders.hold(gitrefs.common_dir_of(git_dir))
                assert common is not None
                self.fresh[path] = gitrefs.read(git_dir, common)
                return self._open(git_dir, common, path)
            except OSError as error:
                self._note("git.unreadable", path, error.strerror or "")
                return None

    def mirror(self, git_dir: int, path: bytes) -> int | None:
        """Links the objects of an open git folder into a keep; None where that can't be, with a note."""
        try:
            objects = os.open(b"objects", FOLDER, dir_fd=git_dir)
        except OSError:
            return None
        try:
            found = os.fstat(objects)
            key = found.st_dev, found.st_ino
            number = self.numbers.get(key) or max(self.numbers.values(), default=0) + 1
            keep = self.keep(number)
            if key not in self.numbers or not keep.folder.is_dir():
                keep.prepare(32 if _SHA256.search(_read(git_dir, b"config")) else 20)
                self.numbers[key] = number
            keep.link(objects)
            return number
        except LinkError as error:
            self._note("git.unlinkable", path, error.strerror or "")
        except OSError as error:
            self._note("git.unreadable", path, error.strerror or "")
        finally:
            os.close(objects)
        return None

    def prune(self, wanted: dict[int, gitprune.Needed], *, dry_run: bool) -> Pruned:
        """Keeps only what is wanted, by the number of the keep; raises OSError."""
        if not dry_run:
            self.numbers = {key: number for key, number in self.numbers.items() if number in wanted}
            self._keeps = {number: keep for number, keep in self._keeps.items() if number in wanted}
        return gitprune.prune(self._folder, wanted, dry_run=dry_run)

    def looks_like_git(self, folder: int) -> bool:
        """Whether an open folder is a git folder: of a work tree, a submodule, or a bare repository."""
        return _is(folder, b"objects", stat.S_ISDIR) and _is(folder, b"refs", stat.S_ISDIR) and (
            _is(folder, b"HEAD", stat.S_ISREG)
        )  # fmt: skip

    def keep(self, number: int) -> Keep:
        """The keep of a number."""
        if number not in self._keeps:
            self._keeps[number] = Keep(self._folder / str(number))
        return self._keeps[number]

    def fetch(self, number: int, names: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Those blobs that the keep holds whole, verified, one by one."""
        try:
            for name, data in self.keep(number).read(names):
                if data is not None and git_name(data, len(name)) == name:
                    yield name, data
        except OSError:
            self.notes.append("git.missing")

    def add(self, number: int, source: int, folder: bytes, file: bytes) -> bool:
        """Keeps one file of an open folder of objects; False where that can't be."""
        if number < 0:
            return False
        keep = self.keep(number)
        try:
            if not keep.folder.is_dir():
                keep.prepare(32 if len(file) > _LONG else 20)
            return keep.add(source, folder, file)
        except OSError:
            return False

    def put_file(self, number: int, path: bytes, contents: Taker) -> str:
        """Puts a kept file of objects into the store; empty when it is not there whole."""
        folder, _, name = path.partition(b"/")
        try:
            handle = self.keep(number).open(folder, name)
        except OSError:
            return ""
        try:
            if not gitpack.is_whole(handle, folder, name):
                return ""
            os.lseek(handle, 0, os.SEEK_SET)
            return contents.put_file(handle, os.fstat(handle).st_size)
        finally:
            os.close(handle)

    def look(self, work: int, path: bytes) -> dict[str, str]:
        """What the references of an open work tree say now, its new objects kept; empty when it is none."""
        with _Folders() as folders:
            git_dir = folders.hold(gitrefs.git_dir_of(work))
            if git_dir is None:
                return {}
            try:
                common = folders.hold(gitrefs.common_dir_of(git_dir))
            except OSError:
                return {}
            assert common is not None
            self.mirror(common, path)
            return gitrefs.read(git_dir, common)

    def _open(self, git_dir: int, common: int, path: bytes) -> Repository | None:
        number = self.mirror(common, path)
        # Where nothing was ever added, there is no index.
        if number is None or not _is(git_dir, b"index", stat.S_ISREG):
            return None
        try:
            index = gitindex.parse(_read(git_dir, b"index"))
        except IndexFormatError as error:
            self._note("git.index", path, str(error))
            return None
        names = list(dict.fromkeys(index.files.values()))
        try:
            sizes = dict(zip(names, self.keep(number).sizes(names), strict=True))
        except OSError:
            self._note("git.missing", path, "")
            return None
        return Repository(number, index, sizes)

    def _note(self, code: str, path: bytes, why: str) -> None:
        self.notes.append(f"{code}: {os.fsdecode(path) or '.'}{' (' + why + ')' if why else ''}")


class _Folders(contextlib.ExitStack):
    def hold(self, handle: int | None) -> int | None:
        if handle is not None:
            self.callback(os.close, handle)
        return handle


def _is(folder: int, name: bytes, right: object) -> bool:
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except OSError:
        return False
    return bool(right(mode))  # type: ignore[operator]


def _read(folder: int, name: bytes) -> bytes:
    try:
        handle = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError:
        return b""
    with os.fdopen(handle, "rb") as file:
        return file.read()
