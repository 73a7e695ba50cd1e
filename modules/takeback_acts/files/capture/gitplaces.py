"""Where git keeps what belongs to a work tree: in it, or somewhere else that its `.git` names."""

from __future__ import annotations

import contextlib
import os
import re
from typing import NamedTuple

from takeback_acts.files.paths import beneath, join, split

_LONGEST = 1 << 16
_WORK_TREE = re.compile(rb"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE)


class Places(NamedTuple):
    """The git folder of a work tree, and the one that all work trees of its repository share."""

    own: bytes
    common: bytes


def of_work_tree(work: bytes) -> Places:
    """The git folders of a work tree, as far as they can be told. Blocks."""
    inside = join(work, b".git")
    own = _named(inside, b"gitdir: ", work) or inside
    return Places(own, _named(join(own, b"commondir"), b"", own) or own)


def elsewhere(work: bytes) -> Places | None:
    """The same where they lie outside of the work tree, and say themselves that they are its own. Blocks."""
    places = of_work_tree(work)
    if beneath(places.common, work):
        return None
    back = _named(join(places.own, b"gitdir"), b"", places.own)
    if back is not None and split(back)[0] == os.path.realpath(work):
        return places
    named = _WORK_TREE.search(_read(join(places.own, b"config")))
    if named is not None and os.path.realpath(os.path.join(places.own, named[1])) == os.path.realpath(work):
        return places
    return None


def head(places: Places) -> str:
    """What the HEAD of a work tree says: an object's name, or `ref: NAME`; empty when it can't be read."""
    return _read(join(places.own, b"HEAD")).split(b"\n", 1)[0].strip().decode(errors="replace")


def _named(file: bytes, before: bytes, folder: bytes) -> bytes | None:
    """The path that a file of one line gives, relative to a folder; None without one."""
    line = _read(file).strip()
    if not line.startswith(before) or line == before.strip() or b"\0" in line:
        return None
    return os.path.realpath(os.path.join(folder, line[len(before) :]))


def _read(path: bytes) -> bytes:
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            return file.read(_LONGEST)
    return b""
