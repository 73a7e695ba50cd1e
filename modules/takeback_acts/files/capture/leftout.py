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


# What `python -m venv`, virtualenv, uv and pip put at the top of one.
_VIRTUALENV = {
    "bin", "scripts", "lib", "lib64", "include", "share", "etc", "man", "local", "pyvenv.cfg", ".gitignore",
    "cachedir.tag", ".lock", "pip-selfcheck.json",
}  # fmt: skip
# A build in the folder of its sources.
_SOURCES = b"CMakeLists.txt"


class LeftOut:
    """Rules of two kinds: `NAME`, and `NAME:MARKER` for a folder that holds a file of that name.

    The name `*` is any. Only a folder that is seen for the first time is judged: what is in the baseline
    stays there, whatever marker is put into it. A marker that may lie in a folder of any name is believed
    only where there is nothing but what its tool makes: somebody's work may lie beside it.
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
        if any(_holds(folder, marker) for marker in self._marked.get(name, ())):
            return not _holds(folder, _SOURCES)
        return any(_holds(folder, marker) for marker in self._marked.get(b"*", ())) and _is_made(folder)


def _is_made(folder: int) -> bool:
    """Whether a folder holds nothing that a virtualenv does not."""
    try:
        return all(name.lower() in _VIRTUALENV or name.startswith("python") for name in os.listdir(folder))
    except OSError:
        return False


def _holds(folder: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True
