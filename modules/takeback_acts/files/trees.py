"""Trees: a folder with all it holds, listed in a manifest, captured, rebuilt, and cleared of exactly that."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from takeback.errors import RefusedError, TakebackError
from takeback_acts.files import beneath, failures
from takeback_acts.files.beneath import Home, Spot
from takeback_acts.files.paths import join, shown
from takeback_acts.files.reading import Reader, steady
from takeback_acts.files.states import ABSENT, State, file_state, folder_state, link_state

_DEEPEST = 200


class Entry(NamedTuple):
    """Something in a folder: its path from there, and its state."""

    path: bytes
    state: State


class Seen(NamedTuple):
    """What lies at a path, and when it is a folder what it holds, parents first."""

    state: State
    entries: tuple[Entry, ...] = ()


NOTHING = Seen(ABSENT)


def observe(spot: Spot, reader: Reader, home: Home) -> Seen:
    """What lies at a place, all of it read through `reader`; a folder with its manifest.

    Raises RefusedError `files.special`, `files.home`, `files.too_deep`, ConflictError `files.unstable`.
    """
    found = spot.look()
    if found is None:
        return NOTHING
    if not stat.S_ISDIR(found.st_mode):
        return Seen(_plain(spot, found, reader))
    handle = beneath.open_within(spot.folder, spot.name, spot.path, home)
    try:
        found = os.fstat(handle)
        entries = tuple(_walk(handle, b"", spot.path, reader, home, 1))
    finally:
        os.close(handle)
    manifest = reader.data(dump(entries))
    return Seen(folder_state(found, manifest=manifest, content=version(entries)), entries)


def version(entries: Iterable[Entry]) -> str:
    """The version of a folder's content: every path, kind, mode and bytes, no times."""
    hashed = hashlib.sha256()
    for path, state in entries:
        hashed.update(path + b"\0" + state.version.encode() + b"\n")
    return "tree:" + hashed.hexdigest()


def dump(entries: Iterable[Entry]) -> bytes:
    """The manifest's bytes: a line of JSON an entry, its path percent-encoded."""
    return b"".join(
        json.dumps({"path": quote_from_bytes(path), **state.dump()}, separators=(",", ":")).encode() + b"\n"
        for path, state in entries
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


def clear(spot: Spot, seen: Seen, home: Home) -> bool:
    """Removes what lies at a place, of a folder only what `seen` lists; answers whether nothing is left."""
    found = spot.look()
    if found is None:
        return True
    if not stat.S_ISDIR(found.st_mode):
        os.unlink(spot.name, dir_fd=spot.folder)
        return True
    known = {entry.path: entry.state.kind for entry in seen.entries}
    handle = beneath.open_within(spot.folder, spot.name, spot.path, home)
    try:
        whole = _clear(handle, b"", spot.path, known, home)
    finally:
        os.close(handle)
    if whole:
        os.rmdir(spot.name, dir_fd=spot.folder)
    return whole


def _walk(folder: int, inner: bytes, path: bytes, reader: Reader, home: Home, depth: int) -> Iterator[Entry]:
    if depth > _DEEPEST:
        raise RefusedError(
            "files.too_deep",
            f"{shown(path):.200} is nested more than {_DEEPEST} folders deep",
            "Act on a folder further down.",
        )
    for name in sorted(map(os.fsencode, os.listdir(folder))):
        own = Spot(folder, name, join(path, name))
        place = inner + name
        found = own.look()
        if found is None:
            continue
        if not stat.S_ISDIR(found.st_mode):
            yield Entry(place, _plain(own, found, reader))
            continue
        handle = beneath.open_within(folder, name, own.path, home)
        try:
            yield Entry(place, folder_state(os.fstat(handle)))
            yield from _walk(handle, place + b"/", own.path, reader, home, depth + 1)
        finally:
            os.close(handle)


def _plain(spot: Spot, found: os.stat_result, reader: Reader) -> State:
    if stat.S_ISLNK(found.st_mode):
        with failures.reported(spot.path):
            return link_state(found, os.readlink(spot.name, dir_fd=spot.folder))
    handle = beneath.open_file(spot.folder, spot.name, spot.path)
    try:
        with failures.reported(spot.path):
            return file_state(*steady(handle, spot.path, reader.file))
    finally:
        os.close(handle)


def _clear(folder: int, inner: bytes, path: bytes, known: Mapping[bytes, str], home: Home) -> bool:
    whole = True
    _make_writable(folder)
    for name in map(os.fsencode, os.listdir(folder)):
        own = Spot(folder, name, join(path, name))
        kind, found = known.get(inner + name), own.look()
        if kind is None or found is None:
            whole = False
        elif kind != "dir":
            os.unlink(name, dir_fd=folder)
        else:
            handle = beneath.open_within(folder, name, own.path, home)
            try:
                empty = _clear(handle, inner + name + b"/", own.path, known, home)
            finally:
                os.close(handle)
            if empty:
                os.rmdir(name, dir_fd=folder)
            whole = whole and empty
    return whole


def _make_writable(folder: int) -> None:
    mode = stat.S_IMODE(os.fstat(folder).st_mode)
    if mode & 0o700 != 0o700:
        os.fchmod(folder, mode | 0o700)


def _line(line: bytes) -> Entry:
    fields = json.loads(line)
    return Entry(unquote_to_bytes(fields.pop("path")), State.model_validate(fields))
