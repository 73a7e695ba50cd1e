"""Repacking: files of objects that went away while their repository still has every object of theirs.

Bringing those back would keep all that git packs anew twice, and nobody would have anything of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from takeback.errors import TakebackError
from takeback_acts.files.capture import gitpack
from takeback_acts.files.capture.changes import Held
from takeback_acts.files.capture.intake import Contents
from takeback_acts.files.capture.node import Node
from takeback_acts.files.capture.repositories import Repositories
from takeback_acts.files.capture.row import Row, Source
from takeback_acts.files.capture.tour import Tour
from takeback_acts.files.capture.way import FOLDER

_LOOSE = re.compile(rb"([0-9a-f]{2})/([0-9a-f]{38}(?:[0-9a-f]{24})?)")
_PACK = re.compile(rb"pack/(pack-[0-9a-f]{40}(?:[0-9a-f]{24})?)\.\w+")
# Made of the packs that are there, and of no use with others.
_DERIVED = re.compile(rb"info/(?:packs|commit-graph.*)|pack/.*", re.DOTALL)
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

# How a path differs: its folder and name, what was there and what is there now.
Raw = tuple[Node, bytes, Row | Held | None, Row | Held | None]


class Repacking:
    """Calls block."""

    def __init__(self, tour: Tour[Node], repositories: Repositories, contents: Contents) -> None:
        self._tour = tour
        self._repositories = repositories
        self._contents = contents

    def passed(self, raw: Sequence[Raw]) -> set[int]:
        """Which of the paths that differ tell of nothing but that a repository was packed anew."""
        tops: dict[Node, dict[bytes, int]] = {}
        for at, (node, name, before, _) in enumerate(raw):
            if node.objects and before is not None:
                top, below = _top(node)
                tops.setdefault(top, {})[below + name] = at
        found: set[int] = set()
        for top, named in tops.items():
            try:
                objects = os.dup(self._tour.to(top))
            except OSError:
                continue
            try:
                found |= self._passed(objects, raw, named)
            finally:
                os.close(objects)
        return found

    def _passed(self, objects: int, raw: Sequence[Raw], named: dict[bytes, int]) -> set[int]:
        gone = {name: at for name, at in named.items() if raw[at][3] is None}
        held = {name: self._holds(name, raw[at]) for name, at in gone.items()}
        missing = _missing(objects, {oid for oids in held.values() for oid in oids})
        spare = {name for name, oids in held.items() if oids and missing.isdisjoint(oids)}
        if not spare:
            return set()
        packs = {found[1] for name in spare if (found := _PACK.fullmatch(name))}
        for name in named:
            pack = _PACK.fullmatch(name)
            if pack[1] in packs if pack is not None else _DERIVED.fullmatch(name):
                spare.add(name)
        full = {name.partition(b"/")[0] for name in gone.keys() - spare if b"/" in name}
        spare |= {name for name in gone if b"/" not in name and name not in full}
        return {named[name] for name in spare}

    def _holds(self, name: bytes, found: Raw) -> set[bytes]:
        """The objects that a file held; empty when it is none of objects, or its index can't be read."""
        node, file, before, _ = found
        loose, pack = _LOOSE.fullmatch(name), _PACK.fullmatch(name)
        if loose is not None:
            return {bytes.fromhex((loose[1] + loose[2]).decode())}
        if pack is None or not name.endswith(b".idx") or not isinstance(before, Row):
            return set()
        try:
            if before.source == Source.BLOB:
                data = self._contents.get(before.digest.hex())
            else:
                data = self._repositories.keep(node.repository).bytes_of(node.name, file)
        except (OSError, TakebackError):
            return set()
        return set(gitpack.names(data, gitpack.length_in(pack[1].decode())) or ())


def _top(node: Node) -> tuple[Node, bytes]:
    """The node of the `objects` above, and the way down from it, with a `/` at its end."""
    below = b""
    while node.parent is not None and node.parent.objects:
        below = node.name + b"/" + below
        node = node.parent
    return node, below


def _missing(objects: int, wanted: set[bytes]) -> set[bytes]:
    """Those of the wanted objects that an open `objects` folder does not have by now."""
    left = set(wanted)
    if left:
        for names in _packed(objects):
            left.difference_update(names)
    return {oid for oid in left if not _is_loose(objects, oid.hex())}


def _packed(objects: int) -> Iterator[Iterator[bytes]]:
    try:
        folder = os.open(b"pack", FOLDER, dir_fd=objects)
    except OSError:
        return
    try:
        there = set(os.listdir(folder))
        for stem in (name[:-4] for name in there if name.endswith(".idx") and f"{name[:-4]}.pack" in there):
            with open(os.open(f"{stem}.idx", _FILE, dir_fd=folder), "rb") as file:
                names = gitpack.names(file.read(), gitpack.length_in(stem))
            if names is not None:
                yield names
    except OSError:
        return
    finally:
        os.close(folder)


def _is_loose(objects: int, name: str) -> bool:
    try:
        return os.stat(f"{name[:2]}/{name[2:]}", dir_fd=objects, follow_symlinks=False).st_size > 0
    except OSError:
        return False
