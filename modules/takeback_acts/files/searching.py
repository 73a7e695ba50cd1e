"""Searching: files by name and lines by what they hold, in a folder and through no link."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from fnmatch import translate

from takeback_acts.files import beneath, failures, paths
from takeback_acts.files.beneath import Home, Spot
from takeback_acts.files.models import Match, Matches, Search
from takeback_acts.files.reading import read_all
from takeback_acts.files.staging import is_temporary

_LARGEST = 32 << 20
_LONGEST_LINE = 500
_DEEPEST = 200
# A caller waits for the answer; what was found until then says more than none.
_SECONDS = 20.0


class _Wanted:
    """What is looked for, and until when."""

    def __init__(self, args: Search) -> None:
        flags = re.IGNORECASE if args.ignore_case else 0
        self._name = re.compile(translate(args.name), flags)
        # Escaped, since a pattern of a caller's own could take for ever.
        self.text = re.compile(re.escape(args.text.encode()), flags) if args.text else None
        self.hidden = args.hidden
        self.until = time.monotonic() + _SECONDS
        self.notes: dict[str, None] = {}

    def named(self, name: bytes) -> bool:
        return self._name.match(os.fsdecode(name)) is not None

    @property
    def is_late(self) -> bool:
        if time.monotonic() < self.until:
            return False
        self.notes["the search took too long and was ended; look in a folder further down"] = None
        return True


def search(path: bytes, args: Search, home: Home) -> Matches:
    """The first `limit` matches in a folder; raises what opening it raises. Blocks.

    Binary files are found by their names only; folders that can't be opened are told in `notes`.
    """
    wanted = _Wanted(args)
    handle = beneath.open_folder(path, home)
    found: list[Match] = []
    try:
        for match in _folder(handle, path, wanted, home, 1):
            if len(found) == args.limit:
                return Matches(matches=found, more=True, notes=list(wanted.notes))
            found.append(match)
    finally:
        os.close(handle)
    return Matches(matches=found, more=wanted.is_late, notes=list(wanted.notes))


def _folder(handle: int, path: bytes, wanted: _Wanted, home: Home, depth: int) -> Iterator[Match]:
    for name in sorted(map(os.fsencode, os.listdir(handle))):
        if wanted.is_late:
            return
        if is_temporary(name) or (name.startswith(b".") and not wanted.hidden):
            continue
        spot = Spot(handle, name, paths.join(path, name))
        found = spot.look()
        if found is None:
            continue
        if stat.S_ISDIR(found.st_mode):
            yield from _inner(spot, wanted, home, depth)
        elif wanted.named(name) and stat.S_ISREG(found.st_mode):
            yield from _file(spot, wanted, found.st_size)


def _inner(spot: Spot, wanted: _Wanted, home: Home, depth: int) -> Iterator[Match]:
    if depth > _DEEPEST:
        wanted.notes[f"folders nested more than {_DEEPEST} deep were left out"] = None
        return
    try:
        handle = beneath.open_within(spot.folder, spot.name, spot.path, home)
    except failures.PASSED:
        wanted.notes[f"{paths.shown(spot.path):.300} could not be opened"] = None
        return
    try:
        yield from _folder(handle, spot.path, wanted, home, depth + 1)
    finally:
        os.close(handle)


def _file(spot: Spot, wanted: _Wanted, size: int) -> Iterator[Match]:
    shown = paths.shown(spot.path)
    if wanted.text is None:
        yield Match(path=shown)
        return
    if size > _LARGEST:
        wanted.notes["files larger than 32 MiB were not looked into"] = None
        return
    for number, line in enumerate(_lines(spot, wanted, size), start=1):
        if wanted.text.search(line):
            text = line.rstrip(b"\r\n")[:_LONGEST_LINE].decode(errors="replace")
            yield Match(path=shown, line=number, text=text)


def _lines(spot: Spot, wanted: _Wanted, size: int) -> list[bytes]:
    try:
        handle = beneath.open_file(spot.folder, spot.name, spot.path)
    except failures.PASSED:
        wanted.notes[f"{paths.shown(spot.path):.300} could not be opened"] = None
        return []
    try:
        data = read_all(handle, size)
    finally:
        os.close(handle)
    return [] if b"\0" in data[:8192] else data.splitlines()
