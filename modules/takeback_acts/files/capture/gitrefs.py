"""git's references: where HEAD and every branch, tag and stash point, read without git."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from takeback_acts.files.capture.way import FOLDER

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LONGEST = 1 << 24
_DEEPEST = 30


def read(git_dir: int, common: int) -> dict[str, str]:
    """What each reference says: an object's name, or `ref: NAME`.

    HEAD and what belongs to one work tree come from `git_dir`, all else from the folder it shares.
    """
    refs = dict(_packed(_small(common, b"packed-refs")))
    refs.update(_loose(common, b"refs"))
    for name in (b"HEAD", b"ORIG_HEAD", b"MERGE_HEAD", b"CHERRY_PICK_HEAD", b"REBASE_HEAD"):
        value = _small(git_dir, name).split(b"\n", 1)[0].strip()
        if value:
            refs[name.decode()] = value.decode(errors="replace")
    return refs


def git_dir_of(folder: int) -> int | None:
    """The open git folder of a work tree: its `.git`, or where a `.git` file points; None without one."""
    try:
        found = os.stat(b".git", dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            return os.open(b".git", FOLDER, dir_fd=folder)
        line = _small(folder, b".git").strip()
        if stat.S_ISREG(found.st_mode) and line.startswith(b"gitdir: "):
            return _open(line[8:], folder)
    except OSError:
        return None
    return None


def common_dir_of(git_dir: int) -> int:
    """The open folder that all work trees of a repository share; raises OSError."""
    line = _small(git_dir, b"commondir").strip()
    return _open(line, git_dir) if line else os.dup(git_dir)


def _open(path: bytes, folder: int) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)


def _packed(data: bytes) -> Iterator[tuple[str, str]]:
    for line in data.splitlines():
        value, _, name = line.partition(b" ")
        if name.startswith(b"refs/") and not line.startswith((b"#", b"^")):
            yield os.fsdecode(name), value.decode(errors="replace")


def _loose(folder: int, path: bytes, depth: int = 0) -> Iterator[tuple[str, str]]:
    try:
        handle = os.open(path.rpartition(b"/")[2], FOLDER, dir_fd=folder)
    except OSError:
        return
    try:
        for name in map(os.fsencode, os.listdir(handle)):
            below = path + b"/" + name
            found = os.stat(name, dir_fd=handle, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                if depth < _DEEPEST:
                    yield from _loose(handle, below, depth + 1)
            elif value := _small(handle, name).strip():
                yield os.fsdecode(below), value.decode(errors="replace")
    except FileNotFoundError:
        return
    finally:
        os.close(handle)


def _small(folder: int, name: bytes) -> bytes:
    try:
        handle = os.open(name, _FILE, dir_fd=folder)
    except OSError:
        return b""
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return b""
        return file.read(_LONGEST)
