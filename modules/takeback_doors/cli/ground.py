"""What a daemon stands on: files of its home, known by what they are and not by their names."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_Mark = tuple[int, int]


class Ground:
    """Some files as they are now; whoever deletes or replaces one takes the ground away."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._held = {path: _mark(path) for path in paths}

    def holds(self, path: Path) -> bool:
        """Whether a path still leads to the very file that it led to at first."""
        try:
            return _mark(path) == self._held[path]
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            # A disk that does not answer for a while has taken nothing away.
            return True

    def lost(self) -> Path | None:
        """The first of the paths that leads to its file no longer; None while all is well."""
        return next((path for path in self._held if not self.holds(path)), None)


def _mark(path: Path) -> _Mark:
    found = os.lstat(path)
    return found.st_dev, found.st_ino
