"""Places: in which folders an agent's changes are captured, and what its paths mean there."""

from __future__ import annotations

import os
from collections.abc import Iterable


def root_of(folder: str) -> str:
    """The git work tree around a folder, else the folder itself; empty where there is none. Blocks."""
    top = os.path.realpath(folder)
    if not os.path.isabs(folder) or not os.path.isdir(top):
        return ""
    around = top
    while not os.path.lexists(os.path.join(around, ".git")):
        if around == "/":
            return top
        around = os.path.dirname(around)
    return top if is_wide(around) else around


def is_wide(root: str) -> bool:
    """Whether a folder is the whole disk or a person's whole home: too much to look through."""
    return root == "/" or root == os.path.realpath(os.path.expanduser("~"))


def within(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is one of these folders or lies in one."""
    return any(path == one or path.startswith(one.rstrip("/") + "/") for one in folders)


def real_paths(written: Iterable[str], folder: str) -> list[str]:
    """The paths that an agent wrote, links resolved; a link itself besides what it leads to. Blocks."""
    found: dict[str, None] = {}
    for path in written:
        if "\0" in path:
            continue
        full = os.path.join(folder or "/", os.path.expanduser(path))
        parent, name = os.path.split(full.rstrip("/") or "/")
        own = os.path.join(os.path.realpath(parent), name)
        found[os.path.normpath(own)] = None
        found[os.path.realpath(full)] = None
    return list(found)
