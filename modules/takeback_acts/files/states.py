"""States: what lies at a path, and the versions that say whether two states are the same."""

from __future__ import annotations

import hashlib
import os
import stat
from base64 import b64decode, b64encode
from typing import Literal

from pydantic import BaseModel, ConfigDict

from takeback_acts.files.passages import true_mode

Kind = Literal["absent", "file", "link", "dir"]
ABSENT_VERSION = "absent"


class State(BaseModel):
    """What lies at a path, with all that brings it back.

    `mode` holds the permission bits, `mtime_ns` is in nanoseconds since 1970, `size` in bytes. A file's
    `sha256` names its bytes in the store. A folder's `manifest` names the blob that lists what it holds,
    `content` is the version of that list. `target` is a link's, in base64. `owner` and `group` are kept
    where the daemon may set them. `twin` is the resource of a name that a file has as well, or its own where
    it is the first of them. Times, owners and twins are no part of a version.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    kind: Kind
    mode: int = 0
    mtime_ns: int = 0
    size: int = 0
    sha256: str = ""
    target: str = ""
    manifest: str = ""
    content: str = ""
    owner: int = -1
    group: int = -1
    twin: str = ""

    @property
    def version(self) -> str:
        """The opaque version of the entry itself; a folder's says nothing of what it holds."""
        if self.kind == "file":
            return f"file:{self.mode:04o}:{self.sha256}"
        if self.kind == "link":
            return "link:" + hashlib.sha256(self.target_bytes).hexdigest()
        if self.kind == "dir":
            return f"dir:{self.mode:04o}"
        return ABSENT_VERSION

    @property
    def content_version(self) -> str:
        """The version of what a folder holds; `absent` for everything that is no folder."""
        return self.content if self.kind == "dir" else ABSENT_VERSION

    @property
    def own_version(self) -> str:
        """The version of the entry by itself: its owner and group, and of a folder the mode as well."""
        if self.kind == "absent":
            return ABSENT_VERSION
        kind = f"dir:{self.mode:04o}" if self.kind == "dir" else f"owner:{self.kind}"
        return f"{kind}:{self.owner}:{self.group}"

    @property
    def target_bytes(self) -> bytes:
        """Where a link points, as the system keeps it."""
        return b64decode(self.target)

    def same(self, other: State) -> bool:
        """Whether entry and content are the same in both."""
        return self.version == other.version and self.content_version == other.content_version

    def dump(self) -> dict[str, object]:
        """The state as JSON values, without what says nothing."""
        return self.model_dump(exclude_defaults=True)


ABSENT = State(kind="absent")


def only_own(before: State, after: State) -> bool:
    """Whether all that can differ of an entry is what `own_version` tells."""
    if before.kind == "absent" or before.kind != after.kind:
        return False
    return before.kind == "dir" or before.version == after.version


def told(before: State, after: State) -> tuple[str, str]:
    """The two versions that tell how an entry differs."""
    if only_own(before, after):
        return before.own_version, after.own_version
    return before.version, after.version


def sha256_of(version: str) -> str | None:
    """The digest of the bytes of a file's version; None for what is no file."""
    return version.rpartition(":")[2] if version.startswith("file:") else None


def file_state(found: os.stat_result, sha256: str, size: int) -> State:
    """The state of a regular file whose bytes have been read."""
    return State(
        kind="file",
        mode=stat.S_IMODE(found.st_mode),
        mtime_ns=found.st_mtime_ns,
        size=size,
        sha256=sha256,
        owner=found.st_uid,
        group=found.st_gid,
    )


def link_state(found: os.stat_result, target: bytes) -> State:
    """The state of a symbolic link."""
    return State(
        kind="link",
        target=b64encode(target).decode(),
        mtime_ns=found.st_mtime_ns,
        owner=found.st_uid,
        group=found.st_gid,
    )


def folder_state(found: os.stat_result, *, manifest: str = "", content: str = "") -> State:
    """The state of a folder; without manifest and content, of its entry alone."""
    return State(
        kind="dir",
        mode=stat.S_IMODE(true_mode(found)),
        mtime_ns=found.st_mtime_ns,
        manifest=manifest,
        content=content,
        owner=found.st_uid,
        group=found.st_gid,
    )
