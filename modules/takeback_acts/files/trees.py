"""Trees: a folder with all it holds, captured and listed in a manifest."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from takeback.errors import TakebackError
from takeback_acts.files import beneath, failures
from takeback_acts.files.beneath import Home, Spot
from takeback_acts.files.descent import descend
from takeback_acts.files.mounts import mounted
from takeback_acts.files.reading import Reader, steady
from takeback_acts.files.states import ABSENT, State, file_state, folder_state, link_state


class Mark(NamedTuple):
    """What tells on disk, without reading it again, that a file or link is the one that was looked at."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


class Entry(NamedTuple):
    """Something in a folder: its path from there, its state, and its mark when it was read from the disk."""

    path: bytes
    state: State
    mark: Mark | None = None


class Seen(NamedTuple):
    """What lies at a path, and when it is a folder what it holds, parents first."""

    state: State
    entries: tuple[Entry, ...] = ()
    mark: Mark | None = None


NOTHING = Seen(ABSENT)


def observe(spot: Spot, reader: Reader, home: Home) -> Seen:
    """What lies at a place, all of it read through `reader`; a folder with its manifest.

    Raises RefusedError `files.special`, `files.home`, `files.mount`, ConflictError `files.unstable`.
    """
    found = spot.look()
    if found is None:
        return NOTHING
    if not stat.S_ISDIR(found.st_mode):
        return plain(spot, found, reader)
    handle = beneath.open_within(spot.folder, spot.name, spot.path, home)
    try:
        found = os.fstat(handle)
        if found.st_dev != os.fstat(spot.folder).st_dev:
            raise mounted(spot.path)
        entries = tuple(_walk(handle, spot.path, reader, home))
    finally:
        os.close(handle)
    manifest = reader.data(dump(entries))
    return Seen(folder_state(found, manifest=manifest, content=version(entries)), entries)


def version(entries: Iterable[Entry]) -> str:
    """The version of a folder's content: every path, kind, mode and bytes, no times."""
    hashed = hashlib.sha256()
    for entry in entries:
        hashed.update(entry.path + b"\0" + entry.state.version.encode() + b"\n")
    return "tree:" + hashed.hexdigest()


def dump(entries: Iterable[Entry]) -> bytes:
    """The manifest's bytes: a line of JSON an entry, its path percent-encoded."""
    return b"".join(
        json.dumps(
            {"path": quote_from_bytes(entry.path), **entry.state.dump()}, separators=(",", ":")
        ).encode()
        + b"\n"
        for entry in entries
    )


def load(manifest: bytes) -> tuple[Entry, ...]:
    """The entries of a manifest; raises TakebackError `files.blob_corrupt` when it is none."""
    try:
        return tuple(_line(line) for line in manifest.splitlines())
    except (ValueError, KeyError, TypeError):
        raise TakebackError(
            "files.blob_corrupt",
            "The list of a folder's files is damaged",
            "Nothing was changed. Check the disk.",
        ) from None


def mark(found: os.stat_result) -> Mark:
    """The mark of what was looked at."""
    return Mark(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def plain(spot: Spot, found: os.stat_result, reader: Reader) -> Seen:
    """What a file or link is; raises what `observe` raises."""
    if stat.S_ISLNK(found.st_mode):
        with failures.reported(spot.path):
            state = link_state(found, os.readlink(spot.name, dir_fd=spot.folder))
            return Seen(state, mark=mark(found))
    handle = beneath.open_file(spot.folder, spot.name, spot.path)
    try:
        with failures.reported(spot.path):
            about, sha256, size = steady(handle, spot.path, reader.file)
            return Seen(file_state(about, sha256, size), mark=mark(about))
    finally:
        os.close(handle)


def _walk(folder: int, path: bytes, reader: Reader, home: Home) -> Iterator[Entry]:
    device = os.fstat(folder).st_dev
    for met in descend(folder, path, home):
        if met.leaving:
            continue
        if not met.is_folder:
            state, _, seen = plain(met.spot, met.found, reader)
            yield Entry(met.place, state, seen)
        elif met.found.st_dev != device:
            raise mounted(met.spot.path)
        else:
            yield Entry(met.place, folder_state(met.found))


def _line(line: bytes) -> Entry:
    fields = json.loads(line)
    return Entry(unquote_to_bytes(fields.pop("path")), State.model_validate(fields))
