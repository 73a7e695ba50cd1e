"""Accounts: for whom bytes are kept, and how far the limits reach for it.

A limit is for what is about to happen. What has happened already, as a command's changes, is kept in any
case, or reaching a limit would be a way not to be undone; the next act is then refused.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from takeback.callers import Caller
from takeback_acts.files.packs.usage import LIMITED, UNLIMITED, Room

_NOBODY = "module:files"
_ONLY_ALL = Room(own=inf)
# An agent's undo puts aside what it overwrites, so it may take more than an act, and yet not any amount.
_AGENTS_UNDO = Room(1.25, 1.25)


class Account(NamedTuple):
    """An owner, and how many times the limits may be filled for it."""

    owner: str
    room: Room


# What lay in a folder before anybody acted on it.
BASELINE = Account(_NOBODY, _ONLY_ALL)


def acting(origin: str) -> Account:
    """For an act of this caller. The limit for each agent is for agents."""
    return Account(_owner(origin), LIMITED if _is_agent(origin) else _ONLY_ALL)


def undoing(origin: str) -> Account:
    """For an undo that this caller asked for; the person's is never refused."""
    return Account(_owner(origin), _AGENTS_UNDO if _is_agent(origin) else UNLIMITED)


def captured(origin: str) -> Account:
    """For what a command of this caller has done."""
    return Account(_owner(origin), UNLIMITED)


def _owner(origin: str) -> str:
    """An agent is one over any door, and so is the person on any surface."""
    caller = Caller.parse(origin)
    return {"agent": f"agent:{caller.name}", "person": "person"}.get(caller.kind, origin)


def _is_agent(origin: str) -> bool:
    return Caller.parse(origin).kind == "agent"
