"""Looking: what tools that change nothing answer."""

from __future__ import annotations

import heapq
import os
import stat
from base64 import b64encode
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal

from takeback.context import Scope
from takeback.errors import TakebackError, UsageError
from takeback_acts.files import attributes, beneath, failures, paths, roots, staging, trees
from takeback_acts.files.beneath import Folders, Home, Spot
from takeback_acts.files.landmarks import Landmarks
from takeback_acts.files.models import Content, List, Listed, Listing, Read
from takeback_acts.files.overlay import Overlay
from takeback_acts.files.passages import Passages
from takeback_acts.files.reading import Digester, steady
from takeback_acts.files.states import file_state, folder_state
from takeback_acts.files.trees import NOTHING, Seen

Kind = Literal["file", "dir", "link", "special"]


def read(path: bytes, args: Read, most: int, home: Home) -> Content:
    """Bytes of a file from `offset` on, at most `most`, with the version of the whole. Blocks."""
    with failures.reported(path), beneath.spot(path, home) as spot:
        handle = beneath.open_file(spot.folder, spot.name, path)
        try:
            taker = _Taker(args.offset, min(args.limit or most, most))
            state = file_state(*steady(handle, path, taker.take))
        finally:
            os.close(handle)
    end = args.offset + len(taker.part)
    text = _text(taker.part)
    return Content(
        path=paths.shown(path),
        resource=paths.resource(path),
        content=text,
        content_base64=None if text is not None else b64encode(taker.part).decode(),
        size=state.size,
        mode=f"{state.mode:04o}",
        version=state.version,
        next=end if end < state.size else None,
    )


def list_folder(path: bytes, args: List, home: Home) -> Listing:
    """A page of a folder in constant memory, by the bytes of the names. Blocks."""
    after = _cursor(args.cursor)
    handle = beneath.open_folder(path, home)
    try:
        with failures.reported(path):
            names = heapq.nsmallest(args.limit + 1, (name for name in _names(handle) if name > after))
            entries = [listed for name in names[: args.limit] if (listed := _listed(handle, path, name))]
    finally:
        os.close(handle)
    more = len(names) > args.limit
    following = paths.resource(b"/" + names[args.limit - 1]) if more else None
    return Listing(path=paths.shown(path), entries=entries, next=following)


def versions(
    resources: Sequence[str], scope: Scope | None, home: Home, overlay: Overlay, landmarks: Landmarks
) -> dict[str, str]:
    """The version that each resource has now, or would have in a rehearsal. Blocks.

    Raises RefusedError `scope.outside`, `files.link`, `files.special`, `files.home`, and TakebackError
    `files.unreachable` rather than take a disk that is away for a deletion.
    """
    found: dict[str, str] = {}
    # Each folder is opened once for what lies in it, and no more than one at a time.
    for _, together in groupby(resources, key=lambda resource: resource.rstrip("/").rpartition("/")[0]):
        with Folders(home, Passages()) as folders:
            found |= {
                resource: _version(resource, scope, folders, overlay, landmarks) for resource in together
            }
    return found


def _version(
    resource: str, scope: Scope | None, folders: Folders, overlay: Overlay, landmarks: Landmarks
) -> str:
    path, whole = paths.parse(resource)
    roots.require(scope, path)
    own = paths.is_own(resource)
    disk = _on_disk(path, folders, overlay, own=own, whole=whole or overlay.holds_inside(path))
    seen = overlay.over(path, disk)
    if seen.state.kind == "absent" and not overlay.covers(path):
        landmarks.require_there(path)
    if own:
        return seen.state.own_version
    return seen.state.content_version if whole else seen.state.version


def _on_disk(path: bytes, folders: Folders, overlay: Overlay, *, own: bool, whole: bool) -> Seen:
    try:
        with failures.reported(path):
            spot = folders.spot(path)
            if own:
                return attributes.seen(spot)
            found = spot.look()
            if found is not None and stat.S_ISDIR(found.st_mode) and not whole:
                return Seen(folder_state(found))
            return trees.observe(spot, Digester(), folders.home)
    except TakebackError as error:
        if overlay.hides(path, error):
            return NOTHING
        raise


class _Taker:
    """Hashes a whole file and keeps a part of it."""

    def __init__(self, offset: int, limit: int) -> None:
        self._offset, self._limit = offset, limit
        self.part = b""

    def take(self, handle: int, size: int) -> tuple[str, int]:
        found = Digester().file(handle, size)
        parts, at, left = [], self._offset, self._limit
        while left and at < found[1] and (part := os.pread(handle, left, at)):
            parts.append(part)
            at, left = at + len(part), left - len(part)
        self.part = b"".join(parts)
        return found


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _cursor(cursor: str | None) -> bytes:
    if cursor is None:
        return b""
    try:
        return paths.parse(cursor)[0][1:]
    except UsageError:
        raise UsageError(
            "files.cursor", "The cursor is none that list gave", "Begin without a cursor."
        ) from None


def _names(handle: int) -> Iterator[bytes]:
    with os.scandir(handle) as entries:
        for entry in entries:
            name = os.fsencode(entry.name)
            if not staging.is_own(name):
                yield name


def _listed(handle: int, folder: bytes, name: bytes) -> Listed | None:
    found = Spot(handle, name, folder).look()
    if found is None:
        return None
    path = paths.join(folder, name)
    kind = _kind(found.st_mode)
    size = found.st_size if kind == "file" else 0
    return Listed(name=name.decode(errors="replace"), path=paths.shown(path), kind=kind, size=size)


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "dir"
    return "link" if stat.S_ISLNK(mode) else "special"
