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


class Account(NamedTuple):
    """An owner, and how many times the limits may be filled for it."""

    owner: str
    room: Room


# What lay in a folder before anybody acted on it.
BASELINE = Account(_NOBODY, _ONLY_ALL)
# What an undo puts aside. It has to work when a limit is reached, most of all then.
UNDO = Account("module:undo", UNLIMITED)


def acting(origin: str) -> Account:
    """For an act of this caller. The limit for each agent is for agents."""
    return Account(_owner(origin), LIMITED if _is_agent(origin) else _ONLY_ALL)


def captured(origin: str) -> Account:
    """For what a command of this caller has done."""
    return Account(_owner(origin), UNLIMITED)


def _owner(origin: str) -> str:
    """An agent is one over any door, and so is the person on any surface."""
    caller = Caller.parse(origin)
    return {"agent": f"agent:{caller.name}", "person": "person"}.get(caller.kind, origin)


def _is_agent(origin: str) -> bool:
    return Caller.parse(origin).kind == "agent"
