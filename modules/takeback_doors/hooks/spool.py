"""The spool: events that gates kept while no daemon answered, taken in later and believed less."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

_ENTRY = ".json"
_LARGEST = 512 << 20


class Entry(NamedTuple):
    """One event: whose, at what moment in nanoseconds, what lay at its paths then, and its text."""

    agent: str
    at: int
    images: list[dict[str, Any]]
    event: str


class Spool:
    """A folder of the home in which each event is a file, the oldest first by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def waiting(self) -> list[str]:
        """The names of what has not been taken in yet, oldest first."""
        try:
            with os.scandir(self.folder) as found:
                return sorted(one.name for one in found if one.name.endswith(_ENTRY))
        except FileNotFoundError:
            return []

    def remove(self, name: str) -> None:
        """Forgets one that has been taken in."""
        with contextlib.suppress(FileNotFoundError):
            (self.folder / name).unlink()

    def read(self, name: str) -> Entry | None:
        """One that waits; None where it is damaged. Blocks."""
        try:
            path = self.folder / name
            if path.lstat().st_size > _LARGEST:
                return None
            found = json.loads(path.read_bytes())
            entry = Entry(str(found["agent"]), int(found["at"]), list(found["images"]), str(found["event"]))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return entry if all(isinstance(image, dict) for image in entry.images) else None
