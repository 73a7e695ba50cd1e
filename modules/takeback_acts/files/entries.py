"""Entries: the part of a script that sets owners and modes. Folders are open as long as it works in them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from takeback import faults
from takeback.errors import TakebackError
from takeback_acts.files import attributes
from takeback_acts.files.beneath import Spot
from takeback_acts.files.paths import own, parse, split
from takeback_acts.files.states import State


class Entry(NamedTuple):
    """An entry with its attributes of now and those that are wanted; `busy` when there is work in it."""

    spot: Spot
    now: State
    want: State
    busy: bool

    @property
    def opened(self) -> State:
        """As it is from the beginning, while there is work in it."""
        return attributes.unlocked(self.now) if self.busy else self.now

    @property
    def dressed(self) -> State:
        """As it is wanted, while there may still be something to clear away in it."""
        return attributes.unlocked(self.want) if self.busy else self.want


class Entries:
    """The entries of one script, the outer ones first. Calls block."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = sorted(entries, key=lambda entry: entry.spot.path.count(b"/"))

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    @property
    def shut(self) -> bool:
        """Whether there is work in a folder that is to be opened first."""
        return any(entry.opened != entry.now for entry in self._entries)

    def open(self) -> None:
        """Has its owner enter each folder in which there is work; raises what `attributes.give` raises."""
        for entry in self._entries:
            if entry.opened != entry.now:
                attributes.give(entry.spot, [entry.now], entry.opened)
                faults.point("files.opened")

    def dress(self) -> None:
        """Sets all as wanted, but that folders stay open; raises what `attributes.give` raises."""
        for entry in self._entries:
            attributes.give(entry.spot, [entry.now, entry.opened], entry.dressed)
            faults.point("files.dressed")

    def shut_again(self) -> bool:
        """Sets modes that shut a folder, the inner ones first; answers whether all is as wanted."""
        return self._give_all(lambda entry: ([entry.dressed], entry.want))

    def take_back(self) -> bool:
        """Sets all as it was, where nobody else has set it since; answers whether nothing is left."""
        return self._give_all(lambda entry: ([entry.opened, entry.dressed, entry.now], entry.now))

    def dump(self) -> list[Any]:
        """What recovery after a crash must know, as JSON values."""
        return [[own(entry.spot.path), entry.now.dump(), entry.want.dump()] for entry in self._entries]

    def _give_all(self, states: Callable[[Entry], tuple[list[State], State]]) -> bool:
        whole = True
        for entry in reversed(self._entries):
            expected, want = states(entry)
            try:
                attributes.give(entry.spot, expected, want)
                faults.point("files.shut")
            except (OSError, TakebackError):
                whole = False
        return whole


def of_dump(
    dumped: list[Any], busy: Callable[[bytes], bool], place: Callable[[str], Spot | None]
) -> tuple[Entries, bool]:
    """The entries of a script that a crash cut off, all of them open, and whether they are as wanted."""
    found, finished = list[Entry](), True
    for uri, now, want in dumped:
        path, spot = parse(uri)[0], place(uri)
        if spot is None:
            finished = False
            continue
        entry = Entry(spot, State.model_validate(now), State.model_validate(want), busy(path))
        there = attributes.seen(spot).state
        finished = finished and there.own_version in (entry.want.own_version, entry.dressed.own_version)
        found.append(entry)
        with contextlib.suppress(TakebackError):
            if attributes.unlocked(there) != there and entry.busy:
                attributes.give(spot, [entry.now, entry.want], attributes.unlocked(there))
    return Entries(found), finished


def around(paths: Iterable[bytes]) -> set[bytes]:
    """The folders in which any of these paths lies, at any depth."""
    found: set[bytes] = set()
    for path in paths:
        while path != b"/" and (path := split(path)[0]) not in found:
            found.add(path)
    return found
