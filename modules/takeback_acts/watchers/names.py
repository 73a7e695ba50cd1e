"""Names: how paths, and numbers of files, are written for the files module and for people."""

from __future__ import annotations

import os
from urllib.parse import quote_from_bytes


def resource(path: str) -> str:
    """The resource of a path, which every name has, also one that is no text."""
    return "files:" + quote_from_bytes(os.fsencode(path), safe="/")


def shown(path: str) -> str:
    """A path or a name for people; what is no text in it is written as codes."""
    return path.encode(errors="backslashreplace").decode()


def files(count: int) -> str:
    """So many files, in words."""
    return "1 file" if count == 1 else f"{count:,} files"
