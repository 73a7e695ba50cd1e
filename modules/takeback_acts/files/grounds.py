"""Grounds: the folders in which a command's changes are captured."""

from __future__ import annotations

import os
from collections.abc import Sequence

from takeback.context import Scope
from takeback.errors import RefusedError
from takeback_acts.files import beneath, paths, roots
from takeback_acts.files.beneath import Home
from takeback_acts.files.capture import gitplaces


def chosen(scope: Scope | None, given: Sequence[str], cwd: str, home: Home) -> tuple[bytes, ...]:
    """The roots of a command: those given, else an agent's granted folder or the person's git work tree, or
    the current folder itself. None lies in another. To the person's linked work tree belongs its repository.
    Blocks.

    Raises RefusedError `files.root_wide`, `scope.outside`, `files.home`, and what opening a folder raises.
    """
    if given:
        found = [_resolved(scope, root) for root in given]
    elif scope is not None:
        found = [_granted(scope, roots.resolve(scope, cwd))]
    else:
        found = _usual(_resolved(None, cwd))
    for root in found:
        roots.require(scope, root)
        os.close(beneath.open_folder(root, home))
    return tuple(root for root in dict.fromkeys(found) if not _inside(root, found))


def switched_off(root: bytes, off: Sequence[str]) -> bool:
    """Whether the person has switched capture off for a root, or for a folder around it."""
    return any(paths.beneath(root, os.path.realpath(os.fsencode(folder))) for folder in off)


def work_tree(folder: bytes) -> bytes | None:
    """The top of the git work tree that a folder lies in; None when it lies in none."""
    while True:
        if os.path.lexists(paths.join(folder, b".git")):
            return folder
        if folder == b"/":
            return None
        folder = paths.split(folder)[0]


def _granted(scope: Scope, cwd: bytes) -> bytes:
    """The granted root that holds the current folder, which `roots.resolve` has found to be in one."""
    tops = [paths.canonical(os.fsencode(root)) for root in scope.roots]
    return max((top for top in tops if paths.beneath(cwd, top)), key=len)


def _usual(cwd: bytes) -> list[bytes]:
    top = work_tree(cwd)
    root = top if top is not None and not _is_wide(top) else cwd
    if _is_wide(root):
        raise RefusedError(
            "files.root_wide",
            f"All of {paths.shown(root)} would have to be looked through to see what the command changes",
            "Run it in a project's folder, or say which folder to watch: `--root DIR`.",
        )
    # A commit in a linked work tree is made in the repository that it belongs to.
    places = gitplaces.elsewhere(root) if root == top else None
    return [root] if places is None else [root, places.common]


def _is_wide(root: bytes) -> bool:
    return root in (b"/", os.path.realpath(os.fsencode(os.path.expanduser("~"))))


def _resolved(scope: Scope | None, written: str) -> bytes:
    path = roots.resolve(scope, written)
    # The person's links lead where the person wants; an agent's lead nowhere.
    return os.path.realpath(path) if scope is None else path


def _inside(root: bytes, others: Sequence[bytes]) -> bool:
    return any(other != root and paths.beneath(root, other) for other in others)
