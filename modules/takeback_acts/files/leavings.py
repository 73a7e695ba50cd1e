"""Leavings: what lies at a temporary name goes when its bytes are known, else it comes to light."""

from __future__ import annotations

import errno
import secrets
from collections.abc import Sequence

from takeback_acts.files import renames, staging, trees
from takeback_acts.files.beneath import Home, Spot
from takeback_acts.files.clearing import clear
from takeback_acts.files.reading import Digester
from takeback_acts.files.states import State
from takeback_acts.files.trees import Seen

_TRIES = 20
_DIGITS = 8
_LONGEST = 255
# Some file systems take no more, those that encrypt names for one.
_LONGEST_ANYWHERE = 120


def discard(temp: Spot, known: Sequence[Seen], owner: Spot, home: Home) -> Spot | None:
    """Removes what a temporary name stands for when its bytes are known, else keeps it; answers where."""
    part = temp.beside(temp.name + staging.PART)
    clear(part, trees.observe(part, Digester(), home), home)
    found = trees.observe(temp, Digester(), home)
    if found.state.kind == "absent":
        return None
    if any(within(found, seen) for seen in known) and clear(temp, found, home):
        return None
    return keep(temp, owner)


def keep(temp: Spot, owner: Spot) -> Spot:
    """Gives a stranger's bytes a visible name beside the path they were at; answers where. Raises OSError."""
    longest = _LONGEST
    for _ in range(_TRIES):
        kept = temp.beside(_visible(owner.name, longest))
        try:
            renames.take_free(temp, kept)
        except FileExistsError:
            continue
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG or longest == _LONGEST_ANYWHERE:
                raise
            longest = _LONGEST_ANYWHERE
        else:
            return kept
    raise FileExistsError(errno.EEXIST, "every name tried was taken")


def within(found: Seen, known: Seen) -> bool:
    """Whether everything found is part of what is known: a folder may have been cleared halfway."""
    if found.state.kind != "dir" or known.state.kind != "dir":
        return found.state.same(known.state)
    versions = {entry.path: _bare(entry.state) for entry in known.entries}
    return all(versions.get(entry.path) == _bare(entry.state) for entry in found.entries)


def _visible(name: bytes, longest: int) -> bytes:
    """A name that says where its bytes were, cut between two characters where it would be too long."""
    ending = b".kept-" + secrets.token_hex(_DIGITS // 2).encode()
    cut = name[: longest - len(ending)]
    if cut != name and _is_text(name):
        cut = cut.decode(errors="ignore").encode()
    return cut + ending


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _bare(state: State) -> str:
    return "dir" if state.kind == "dir" else state.version
