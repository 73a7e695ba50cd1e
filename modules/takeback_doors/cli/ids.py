"""Ids of acts, as far as a person has to write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from takeback.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from takeback_doors.cli.shell import Shell

SHORTEST = 8
_WHOLE = 36
# The first 13 characters of a UUIDv7 are its millisecond, so most acts differ there already.
_SHOWN = 13
_PAGE = 500
_HEX = re.compile(r"[0-9a-f-]+")


def find_act(shell: Shell, given: str | None, *, last: bool, undone: bool = False) -> str:
    """The id of the act meant: whole, by a prefix of at least 8 characters, or the last one.

    The last one is the newest act that can be undone, undos aside; with `undone` the newest undo.

    Raises UsageError `usage.id`, NotFoundError `act.unknown`.
    """
    if (given is None) != last:
        raise UsageError("usage.id", "Name one act: either its id or --last", "Ids are in `takeback log`.")
    if given is None:
        return _newest_undo(shell) if undone else _newest(shell)
    text = given.strip().lower()
    if not _HEX.fullmatch(text) or len(text) > _WHOLE:
        raise UsageError("usage.id", f"{given!r:.60} is no act's id", "Ids are in `takeback log`.")
    return text if len(text) == _WHOLE else _by_prefix(shell, text)


def shortened(ids: Sequence[str]) -> dict[str, str]:
    """For each id the shortest beginning, of at least 13 characters, that no other of them has."""
    return {each: _beginning(each, ids) for each in ids}


def _newest(shell: Shell) -> str:
    for act in _acts(shell, {"state": "done"}):
        if act["undoable"] and act["role"] == "act":
            return str(act["id"])
    raise NotFoundError("act.unknown", "There is no act that could be undone", "Look at `takeback log`.")


def _newest_undo(shell: Shell) -> str:
    for act in _acts(shell, {"state": "done"}):
        # A redo has the same role, and there is nothing in it to do again.
        if act["role"] == "undo" and act["tool"] != "undo.redo":
            return str(act["id"])
    raise NotFoundError("act.unknown", "Nothing was undone that could be redone", "Look at `takeback log`.")


def _by_prefix(shell: Shell, text: str) -> str:
    if len(text.replace("-", "")) < SHORTEST:
        raise UsageError("usage.id", f"{text!r} is too short", f"Give at least {SHORTEST} characters.")
    found = [str(act["id"]) for act in _acts(shell, {"id_prefix": text})]
    if not found:
        raise NotFoundError("act.unknown", f"No act's id begins with {text}", "Ids are in `takeback log`.")
    if len(found) > 1:
        raise UsageError("usage.id", f"{len(found)} acts' ids begin with {text}", _listed(found))
    return found[0]


def _acts(shell: Shell, filters: dict[str, Any]) -> Any:
    cursor = None
    while True:
        page = shell.call("undo.list", {**filters, "limit": _PAGE, "cursor": cursor})
        yield from page["acts"]
        cursor = page.get("next")
        if cursor is None:
            return


def _listed(found: list[str]) -> str:
    listed = ", ".join(found[:5])
    return f"They are {listed}{' and more' if len(found) > 5 else ''}."


def _beginning(each: str, ids: Sequence[str]) -> str:
    length = _SHOWN
    while length < len(each) and any(other != each and other.startswith(each[:length]) for other in ids):
        length += 1
    return each[:length]
