"""Roots: from what a caller wrote to the canonical path it may mean."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache

from takeback.context import Scope
from takeback.errors import RefusedError, UsageError
from takeback_acts.files.paths import beneath, canonical, encode, join, shown, split
from takeback_acts.files.staging import is_temporary


def resolve(scope: Scope | None, written: str) -> bytes:
    """The canonical path that a caller means; it is not looked at whether anything is there.

    With a scope the path must lie in one of its roots, and may be relative to the only one. Without one it
    is any absolute path, and links on the way to its folder are the caller's own.
    Raises UsageError `files.path`, `files.relative`, RefusedError `scope.outside`.
    """
    raw = encode(written)
    if not raw:
        raise UsageError("files.path", "The path is empty", "Name a file or folder.")
    if scope is None:
        return _own(raw)
    roots = [_canonical(root) for root in scope.roots]
    if raw.startswith(b"/"):
        path = canonical(raw)
    else:
        path = canonical(join(_only(roots, raw), raw))
    if not any(beneath(path, root) for root in roots):
        raise outside(path)
    return path


def require(scope: Scope | None, path: bytes) -> None:
    """Raises RefusedError `scope.outside` unless a canonical path lies in one of the scope's roots."""
    if not holds(scope, path):
        raise outside(path)


def holds(scope: Scope | None, path: bytes) -> bool:
    """Whether a canonical path lies in one of the scope's roots, or there is no scope."""
    return scope is None or any(beneath(path, _canonical(root)) for root in scope.roots)


def is_root(scope: Scope | None, path: bytes) -> bool:
    """Whether a path is a root itself, which can be listed but neither moved nor deleted."""
    if path == b"/":
        return True
    return scope is not None and any(path == _canonical(root) for root in scope.roots)


def target(scope: Scope | None, written: str) -> bytes:
    """The path that an act changes; raises what `resolve` raises, and RefusedError `files.root`,
    `files.reserved`.
    """
    path = resolve(scope, written)
    if is_root(scope, path):
        raise RefusedError("files.root", f"{shown(path)} is a root itself", "Act on what lies in it.")
    if any(is_temporary(part) for part in path.split(b"/")):
        raise RefusedError(
            "files.reserved",
            f"{shown(path)} has a name that takeback gives to what it is working on",
            "Choose another name.",
        )
    return path


def around(scope: Scope | None, targets: Sequence[bytes]) -> bytes:
    """The root that holds all of an act's paths, within which its inverse has to stay."""
    for root in scope.roots if scope is not None else ():
        top = _canonical(root)
        if all(beneath(path, top) for path in targets):
            return top
    return b"/"


def outside(path: bytes) -> RefusedError:
    """The path lies in no root of the caller's."""
    return RefusedError(
        "scope.outside",
        f"{shown(path)} lies outside the folders that were granted",
        "Stay inside them, or ask the person to grant the folder: `takeback agents grant NAME --root DIR`.",
    )


@lru_cache(maxsize=256)
def _canonical(root: str) -> bytes:
    """A granted root as it is compared; every call asks for the same few."""
    return canonical(os.fsencode(root))


def _own(raw: bytes) -> bytes:
    if not raw.startswith(b"/"):
        raise _relative(raw, "there is no root it could be relative to")
    path = canonical(raw)
    folder, name = split(path)
    return join(os.path.realpath(folder), name) if name else path


def _only(roots: list[bytes], raw: bytes) -> bytes:
    if len(roots) != 1:
        raise _relative(raw, f"it could be relative to {len(roots)} roots")
    return roots[0]


def _relative(raw: bytes, why: str) -> UsageError:
    return UsageError(
        "files.relative", f"The path {shown(raw):.200} is relative, and {why}", "Give the full path."
    )
