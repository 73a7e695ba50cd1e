"""Links: files that were one file under several names, and are one again when they come back."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from takeback.errors import TakebackError
from takeback_acts.files import beneath, trees
from takeback_acts.files.beneath import Home, Spot
from takeback_acts.files.paths import parse, resource, shown
from takeback_acts.files.reading import Digester
from takeback_acts.files.states import State

_WHY_STAYS = "linked: {} has a name elsewhere as well, which is not put back by itself"


class _Staged(NamedTuple):
    """Where a file lies that others are to be links to: in a folder, under the first name that is there."""

    folder: int
    names: tuple[bytes, ...]
    identity: tuple[int, int]


class Links:
    """What one script has staged of such files. Their first name by path is copied, the others are links."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._staged: dict[str, _Staged] = {}

    def note(self, state: State, spot: Spot, top: Spot, names: Sequence[bytes], inner: bytes) -> None:
        """Remembers a file that was staged, in a folder whose name `names` will be one of."""
        if state.twin:
            found = os.stat(spot.name, dir_fd=spot.folder, follow_symlinks=False)
            places = tuple(name + b"/" + inner if inner else name for name in names)
            self._staged[state.twin] = _Staged(top.folder, places, (found.st_dev, found.st_ino))

    def join(self, state: State, spot: Spot) -> bool:
        """Makes a name of the file that it was another name of; False where that is not there any more."""
        if not state.twin:
            return False
        try:
            staged = self._staged.get(state.twin)
            return _join_staged(staged, spot) if staged is not None else self._join(state, spot)
        except (OSError, TakebackError):
            return False

    def _join(self, state: State, spot: Spot) -> bool:
        with beneath.spot(parse(state.twin)[0], self._home) as there:
            found = there.look()
            if found is None or not stat.S_ISREG(found.st_mode):
                return False
            if trees.plain(there, found, Digester()).state.version != state.version:
                return False
            staged = _Staged(there.folder, (there.name,), (found.st_dev, found.st_ino))
            return _join_staged(staged, spot)


def follows(state: State, path: bytes) -> bool:
    """Whether a file at a path is to be a link to one at another."""
    return state.twin not in ("", resource(path))


def twins(before: Mapping[bytes, int], others: Mapping[int, Sequence[bytes]]) -> dict[bytes, str]:
    """For paths by the inode that they had, the resource of the first name of each file with several.

    `others` are names by inode that are still there: one of them comes first.
    """
    names: dict[int, list[bytes]] = {}
    for path, inode in before.items():
        names.setdefault(inode, []).append(path)
    found: dict[bytes, str] = {}
    for inode, paths in names.items():
        there = others.get(inode, ())
        if len(paths) + len(there) > 1:
            found |= dict.fromkeys(paths, resource(min(there or paths)))
    return found


def elsewhere(path: bytes, known: int) -> str:
    """What to say of a file that has more names than are known; empty when it has not. Blocks."""
    try:
        with beneath.spot(path, Home([])) as spot:
            found = spot.look()
    except (OSError, TakebackError):
        return ""
    more = found is not None and found.st_nlink > known
    return _WHY_STAYS.format(shown(path)) if more else ""


def _join_staged(staged: _Staged, spot: Spot) -> bool:
    for name in staged.names:
        try:
            os.link(name, spot.name, src_dir_fd=staged.folder, dst_dir_fd=spot.folder, follow_symlinks=False)
        except FileNotFoundError:
            continue
        found = os.stat(spot.name, dir_fd=spot.folder, follow_symlinks=False)
        if (found.st_dev, found.st_ino) == staged.identity:
            return True
        os.unlink(spot.name, dir_fd=spot.folder)
    return False
