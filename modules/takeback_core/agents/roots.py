"""Roots: the folders an agent may touch, checked when the person grants them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NoReturn

from takeback.errors import RefusedError
from takeback.home import Home


def resolve(root: str, home: Home) -> str:
    """The real absolute path of a folder to grant; raises RefusedError `agent.root`.

    A folder that holds takeback's own home, or lies in it, is refused: whoever may write there could
    rewrite the log of what was done.
    """
    if "\0" in root or not os.path.isabs(root):
        _refuse(root, "is not an absolute path", "Give the folder's full path.")
    try:
        real = os.path.realpath(root, strict=True)
    except OSError as error:
        _refuse(root, f"can't be opened ({error.strerror})", "Make the folder first, or correct the path.")
    if not os.path.isdir(real):
        _refuse(root, "is not a folder", "A root is a folder; grant the one that holds the file.")
    for own in own_folders(home):
        if _within(own, real) or _within(real, own):
            _refuse(root, f"overlaps takeback's own folder {own}", "Grant a folder beside it, not around it.")
    return real


def named_outright(root: str, home: Home) -> str:
    """The path of a folder to grant that no link leads to; raises RefusedError `agent.root`.

    The person says yes to this very path. If a link could take its place in the meantime, another
    folder would be given.
    """
    real = resolve(root, home)
    if os.path.normpath(root) != real:
        _refuse(root, f"is another way to {real}", "Name that folder itself, if it is the one you mean.")
    return real


def own_folders(home: Home) -> set[str]:
    """The real paths of everything takeback keeps for itself."""
    return {os.path.realpath(part) for part in (home.config, home.data, home.state, home.runtime)}


def spellings(root: str) -> set[str]:
    """The ways in which a granted folder may be named when it is taken away, gone from disk or not."""
    if "\0" in root:
        return set()
    return {root, os.path.normpath(root), os.path.realpath(root)}


def without_doubles(roots: Iterable[str]) -> list[str]:
    """The roots in their order, each once."""
    return list(dict.fromkeys(roots))


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _refuse(root: str, why: str, hint: str) -> NoReturn:
    raise RefusedError("agent.root", f"{root!r} {why}", hint, data={"root": root})
