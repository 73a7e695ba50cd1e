"""Attributes: the owner of an entry and the mode of a folder, looked at and set without what it holds."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection

from takeback_acts.files import failures
from takeback_acts.files.beneath import Spot, set_mode
from takeback_acts.files.passages import is_set, true_mode
from takeback_acts.files.states import ABSENT, State
from takeback_acts.files.trees import NOTHING, Seen

_PASSABLE = 0o700


def seen(spot: Spot) -> Seen:
    """What lies at a place, in its attributes alone; raises RefusedError `files.special`."""
    with failures.reported(spot.path):
        found = spot.look()
    return NOTHING if found is None else Seen(_state(found, spot.path))


def give(spot: Spot, expected: Collection[State], want: State) -> None:
    """Gives what lies at a place the attributes of `want`, if it has those of one of the `expected`.

    Raises ConflictError `files.changed` and what the system says.
    """
    with failures.reported(spot.path):
        found = spot.look()
        now = ABSENT if found is None else _state(found, spot.path)
        if found is None or all(now.own_version != state.own_version for state in expected):
            raise failures.changed(spot.path)
        mode = want.mode if now.kind == "dir" else stat.S_IMODE(found.st_mode)
        is_set(found, mode)
        owner = (want.owner, want.group)
        # A new owner clears bits of the mode, so the mode comes after it.
        if owner != (found.st_uid, found.st_gid):
            os.chown(spot.name, *owner, dir_fd=spot.folder, follow_symlinks=False)
        elif mode == stat.S_IMODE(found.st_mode):
            return
        if now.kind != "link":
            set_mode(spot, found, mode)


def is_locked(state: State) -> bool:
    """Whether its owner can't work in a folder with this mode."""
    return state.kind == "dir" and state.mode & _PASSABLE != _PASSABLE


def unlocked(state: State) -> State:
    """The same, but that its owner can work in it."""
    return state.model_copy(update={"mode": state.mode | _PASSABLE}) if is_locked(state) else state


def may_give(now: State, want: State) -> bool:
    """Whether this process may make the owner and group of something those of another state."""
    user = os.geteuid()
    if user == 0 or (now.owner, now.group) == (want.owner, want.group):
        return True
    return now.owner == want.owner == user and want.group in {os.getegid(), *os.getgroups()}


def may_change(now: State) -> bool:
    """Whether this process may change a mode."""
    return os.geteuid() in (0, now.owner)


def _state(found: os.stat_result, path: bytes) -> State:
    for test, kind in ((stat.S_ISDIR, "dir"), (stat.S_ISREG, "file"), (stat.S_ISLNK, "link")):
        if test(found.st_mode):
            mode = stat.S_IMODE(true_mode(found)) if kind == "dir" else 0
            return State.model_validate(
                {"kind": kind, "mode": mode, "owner": found.st_uid, "group": found.st_gid}
            )
    raise failures.special(path)
