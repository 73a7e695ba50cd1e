"""Order: what happened to each row, from events that came in another order than it happened in.

A trigger runs when its statement has ended, after what other triggers of the same rows have done: a change
that a trigger makes is told before the change that set it off. What a row looked like ties the two together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from takeback_acts.rows.changes import Event
from takeback_acts.rows.tables import Image, Key, Table

_Place: TypeAlias = "tuple[str, Key]"


def ordered(events: Sequence[Event], tables: Mapping[str, Table]) -> list[Event]:
    """The events as they are, where each row has but one; else one event for each row."""
    if len(events) < 2 or _apart(events, tables):
        return list(events)
    return _Chains(events, tables).joined()


def _apart(events: Sequence[Event], tables: Mapping[str, Table]) -> bool:
    """Whether no key is in two events."""
    seen: set[_Place] = set()
    for name, before, after in events:
        table = tables[name]
        keys = {table.identify(table.key_of(image)) for image in (before, after) if image is not None}
        for key in keys:
            place = (name, key)
            if place in seen:
                return False
            seen.add(place)
    return True


class _Chains:
    """Rows followed from one image to the next. Which of two like images is which makes no difference."""

    def __init__(self, events: Sequence[Event], tables: Mapping[str, Table]) -> None:
        self._events = events
        self._tables = tables
        self._from: dict[tuple[str, Image], list[int]] = {}
        surplus: dict[tuple[str, Image], int] = {}
        for number in range(len(events) - 1, -1, -1):
            name, before, after = events[number]
            if before is not None:
                self._from.setdefault((name, before), []).append(number)
                surplus[name, before] = surplus.get((name, before), 0) + 1
            if after is not None:
                surplus[name, after] = surplus.get((name, after), 0) - 1
        self._first = surplus

    def joined(self) -> list[Event]:
        """One event for each row, in the order of their first; those that come to nothing are left out."""
        chains = [chain for number in range(len(self._events)) if (chain := self._chain(number)) is not None]
        chains.sort(key=lambda chain: chain[0])
        return self._merged([event for _, event in chains])

    def _chain(self, number: int) -> tuple[int, Event] | None:
        """The row that event `number` is the first of."""
        name, before, after = self._events[number]
        if before is not None:
            if self._first.get((name, before), 0) <= 0:
                return None
            self._first[name, before] -= 1
            number = self._from[name, before].pop()
            after = self._events[number].after
        first = number
        while after is not None:
            following = self._from.get((name, after))
            if not following:
                break
            number = following.pop()
            first = min(first, number)
            after = self._events[number].after
        return first, Event(name, before, after)

    def _merged(self, events: list[Event]) -> list[Event]:
        """A row that went and one that came under the same key are one row."""
        gone: dict[_Place, int] = {}
        for number, (name, before, after) in enumerate(events):
            if before is not None and after is None:
                gone[self._place(name, before)] = number
        made: list[Event | None] = list(events)
        for number, (name, before, after) in enumerate(events):
            if before is None and after is not None:
                other = gone.pop(self._place(name, after), None)
                if other is not None:
                    made[other] = Event(name, events[other].before, after)
                    made[number] = None
        return [each for each in made if each is not None and each.before != each.after]

    def _place(self, name: str, image: Image) -> _Place:
        table = self._tables[name]
        return name, table.identify(table.key_of(image))
