"""What is left out: folders that can be made again by the tool that made them."""

from __future__ import annotations

import os
from collections.abc import Sequence

DEFAULTS = (
    "node_modules",
    "__pycache__",
    ".tox",
    ".nox",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".gradle",
    ".parcel-cache",
    ".turbo",
    "*:pyvenv.cfg",
    "target:CACHEDIR.TAG",
    "build:CMakeCache.txt",
    "build:CACHEDIR.TAG",
    ".cache:CACHEDIR.TAG",
    "target:.rustc_info.json",
    ".next:BUILD_ID",
)


class LeftOut:
    """Rules of two kinds: `NAME`, and `NAME:MARKER` for a folder that holds a file of that name.

    The name `*` is any. Only a folder that is seen for the first time is judged: what is in the baseline
    stays there, whatever marker is put into it.
    """

    def __init__(self, rules: Sequence[str] = DEFAULTS) -> None:
        self.rules = tuple(rules)
        pairs = [os.fsencode(rule).partition(b":") for rule in rules]
        self._always = {name for name, _, marker in pairs if not marker}
        self._marked: dict[bytes, list[bytes]] = {}
        for name, _, marker in pairs:
            if marker:
                self._marked.setdefault(name, []).append(marker)

    def by_name(self, name: bytes) -> bool:
        """Whether a folder is left out whatever it holds."""
        return name in self._always

    def by_marker(self, folder: int, name: bytes) -> bool:
        """Whether an open folder is left out for what it holds."""
        markers = (*self._marked.get(name, ()), *self._marked.get(b"*", ()))
        return any(_holds(folder, marker) for marker in markers)


def _holds(folder: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True
