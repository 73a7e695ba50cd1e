"""A row of the baseline: something in a folder that is no folder, and where its content lies."""

from __future__ import annotations

import stat
from enum import IntEnum
from typing import NamedTuple

from takeback_acts.files.capture.marks import Mark


class Source(IntEnum):
    """Where a row's content lies, or why it lies nowhere."""

    NONE = 0
    BLOB = 1
    GIT = 2
    LINK = 3
    SPECIAL = 4
    DENIED = 5
    UNSTABLE = 6
    FAILED = 7
    LEFT_OUT = 8
    MOUNT = 9
    HOME = 10
    KEPT = 11
    UNKEPT = 12


class Row(NamedTuple):
    """Something in a folder, as the baseline knows it.

    `digest` is the SHA-256 of its bytes, in our store or UNKEPT, or the git object's name, by `source`; a
    KEPT file of git's objects has none, for its name vouches for its bytes. `racy` says that it may have been
    written after it was read without its times showing it.
    """

    mark: Mark
    uid: int
    gid: int
    linked: bool
    racy: bool
    source: Source
    digest: bytes = b""
    target: bytes = b""


def kind(mode: int) -> str:
    """The kind of what has this mode: file, link, dir or special."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISLNK(mode):
        return "link"
    return "dir" if stat.S_ISDIR(mode) else "special"


def oid(digest: bytes) -> bytes:
    """The name of a git object, from the digest of a row whose content lies there."""
    # A name of twenty bytes is padded with zeros; one of thirty-two that ends in twelve zeros is not met.
    return digest[:20] if digest[20:] == bytes(12) else digest
