"""Git's own files, where equal bytes are too much to ask: an index."""

from __future__ import annotations

import re

from takeback_acts.files.capture import gitindex

_INDEX = re.compile(rb"/\.git/(?:worktrees/[^/]+/|modules/.+/)?index\Z")
_COUNT = slice(8, 12)


def is_index(path: bytes) -> bool:
    """Whether git keeps an index at this path."""
    return _INDEX.search(path) is not None


def same_index(one: bytes, other: bytes) -> bool:
    """Whether two indexes track the same; `git status` rewrites one with nothing but newer times in it."""
    try:
        return one[_COUNT] == other[_COUNT] and gitindex.parse(one) == gitindex.parse(other)
    except gitindex.IndexFormatError:
        return False
