"""Paths: how a file is named. Inside, a path is canonical absolute bytes; outside, a resource or text."""

from __future__ import annotations

import os
from functools import lru_cache
from urllib.parse import quote_from_bytes, unquote_to_bytes

from takeback.errors import UsageError

SCHEME = "files:"
_LONGEST = 4096


@lru_cache(maxsize=4096)
def resource(path: bytes) -> str:
    """The resource of a path's entry: `files:/a/b%FF`, all but unreserved ASCII and `/` percent-encoded."""
    return SCHEME + quote_from_bytes(path, safe="/")


def content(path: bytes) -> str:
    """The resource of what a folder holds: the entry's with a `/` behind it."""
    return SCHEME + quote_from_bytes(path.rstrip(b"/") + b"/", safe="/")


def own(path: bytes) -> str:
    """The resource of an entry by itself, a folder without what it holds: the entry's with `/.` behind it.

    Its version tells the owner, and of a folder the mode.
    """
    return resource(by_itself(path))


def by_itself(path: bytes) -> bytes:
    """A path as `own` names it."""
    return path.rstrip(b"/") + b"/."


def is_own(uri: str) -> bool:
    """Whether a resource is one of an entry by itself."""
    return uri.endswith("/.")


def parse(uri: str) -> tuple[bytes, bool]:
    """The path that a resource names, and whether it names a folder's content rather than an entry.

    Raises UsageError `files.path`.
    """
    if not uri.startswith(SCHEME + "/"):
        raise _malformed(uri, "is no resource of files", "A resource is `files:` and an absolute path.")
    raw = unquote_to_bytes(uri[len(SCHEME) :])
    whole = raw.endswith(b"/") and raw != b"/"
    path = canonical(raw.rstrip(b"/") if whole else raw)
    return path, whole


def canonical(raw: bytes) -> bytes:
    """An absolute path as it is kept: no empty or `.` part, no NUL, and `..` refused rather than resolved.

    Raises UsageError `files.path`.
    """
    shown = os.fsdecode(raw[:200])
    if not raw.startswith(b"/"):
        raise _malformed(shown, "is not absolute", "Begin the path with `/`.")
    if b"\0" in raw:
        raise _malformed(shown, "holds a NUL", "Leave it out.")
    if len(raw) > _LONGEST:
        raise _malformed(shown, f"is longer than {_LONGEST} bytes", "Use a shorter path.")
    parts = [part for part in raw.split(b"/") if part not in (b"", b".")]
    if b".." in parts:
        raise _malformed(shown, "goes up with `..`", "Name the file by its path from the root down.")
    return b"/" + b"/".join(parts)


def shown(path: bytes) -> str:
    """A path for people and agents: text where it is UTF-8, else its resource; both are understood."""
    try:
        return path.decode()
    except UnicodeDecodeError:
        return resource(path)


def encode(text: str) -> bytes:
    """The bytes of a path given as text or as a resource; raises UsageError `files.path`."""
    if text.startswith(SCHEME + "/"):
        return unquote_to_bytes(text[len(SCHEME) :])
    try:
        return os.fsencode(text)
    except UnicodeEncodeError:
        raise _malformed(
            ascii(text[:200]), "is not text", "Name the file by its resource, `files:/…`."
        ) from None


def beneath(path: bytes, root: bytes) -> bool:
    """Whether a canonical path is a root or lies in it."""
    return path == root or path.startswith(root.rstrip(b"/") + b"/")


def join(folder: bytes, name: bytes) -> bytes:
    """The path of an entry in a folder."""
    return folder.rstrip(b"/") + b"/" + name


def split(path: bytes) -> tuple[bytes, bytes]:
    """A path's folder and the name in it; the name of `/` is empty."""
    folder, _, name = path.rpartition(b"/")
    return folder or b"/", name


def _malformed(shown: str, why: str, hint: str) -> UsageError:
    return UsageError("files.path", f"The path {shown!r} {why}", hint)
