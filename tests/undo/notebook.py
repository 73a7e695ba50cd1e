"""What a model owner keeps, in memory or in a file, and the switches by which tests steer it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from takeback import TakebackError

ABSENT = "absent"


def version(value: str | None) -> str:
    """The version of a note's content."""
    return ABSENT if value is None else f"v:{value}"


@dataclass
class Notebook:
    """What a `Notes` module keeps, and the switches by which tests steer it.

    `failures` are taken one for each inverse that really runs: `""` lets it pass, `before` fails it before
    its effect, `crash` by a fault of its own, `inside` after its intent is recorded, `late` after its
    effect. `inverse` is the tool that new acts name: `notes.restore`, `notes.restore_plain` (records no
    counter) or `notes.restore_blind` (can't be rehearsed). With `merges`, values of comma separated words
    are merged three-way. A note under the key `refused` can't be put. `waits` are two events of the next
    inverse that runs: it sets the first and goes on after the second. `asks` is a tool, with its input, that
    inverses call. `objects` is raised by every rehearsal. `ran` lists the keys of every inverse that really
    ran.
    """

    values: dict[str, str] = field(default_factory=dict)
    merges: bool = False
    inverse: str = "notes.restore"
    refused: str | None = None
    waits: tuple[anyio.Event, anyio.Event] | None = None
    asks: tuple[str, dict[str, Any]] | None = None
    objects: TakebackError | None = None
    failures: list[str] = field(default_factory=list)
    ran: list[list[str]] = field(default_factory=list)

    def break_next(self, how: str = "before", *, after: int = 0) -> None:
        """Make an inverse fail, after letting some pass."""
        self.failures = [*[""] * after, how]

    def apply(self, changes: Mapping[str, str | None]) -> None:
        """Change notes, all at once."""
        for key, value in changes.items():
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = value


@dataclass
class Shelf(Notebook):
    """A notebook in a file, which outlives the process that writes it."""

    path: Path = Path()

    def __post_init__(self) -> None:
        if self.path.exists():
            self.values = json.loads(self.path.read_text())

    def apply(self, changes: Mapping[str, str | None]) -> None:
        super().apply(changes)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.values))
        os.replace(part, self.path)
