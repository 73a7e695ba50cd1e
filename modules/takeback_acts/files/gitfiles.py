"""Git's own files, where equal bytes are too much to ask: an index, and a branch that was pushed."""

from __future__ import annotations

import os
import re

from takeback_acts.files.beneath import Spot
from takeback_acts.files.capture import gitindex, gitrefs

_INDEX = re.compile(rb"/\.git/(?:worktrees/[^/]+/|modules/.+/)?index\Z")
_BRANCH = re.compile(rb"(?P<git>.*/\.git(?:/modules/.+)?)/refs/heads/.+\Z", re.DOTALL)
_COUNT = slice(8, 12)


def is_index(path: bytes) -> bool:
    """Whether git keeps an index at this path."""
    return _INDEX.search(path) is not None


def is_branch(path: bytes) -> bool:
    """Whether git keeps a branch at this path."""
    return _BRANCH.match(path) is not None


def same_index(one: bytes, other: bytes) -> bool:
    """Whether two indexes track the same; `git status` rewrites one with nothing but newer times in it."""
    try:
        return one[_COUNT] == other[_COUNT] and gitindex.parse(one) == gitindex.parse(other)
    except gitindex.IndexFormatError:
        return False


def is_pushed(spot: Spot, value: bytes) -> bool:
    """Whether a branch's file holds a commit that some remote is known to have as a branch. Blocks."""
    found = _BRANCH.match(spot.path)
    if found is None or spot.folder < 0:
        return False
    up = b"/".join([b".."] * spot.path[len(found["git"]) + 1 :].count(b"/"))
    try:
        folder = os.open(up, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=spot.folder)
    except OSError:
        return False
    try:
        refs = gitrefs.read(folder, folder)
    finally:
        os.close(folder)
    commit = value.strip().decode(errors="replace")
    return any(name.startswith("refs/remotes/") and at == commit for name, at in refs.items())
