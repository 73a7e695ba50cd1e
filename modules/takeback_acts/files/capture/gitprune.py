"""Pruning: kept objects of git that no baseline counts on any more are let go.

What is kept is everything that a repository had when it was looked at. Once its `git gc` has packed that
anew, the old packs and loose objects take room for us alone.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from takeback import faults
from takeback_acts.files.capture import gitpack, shelf
from takeback_acts.files.capture.node import walk
from takeback_acts.files.capture.row import Source, oid
from takeback_acts.files.capture.shelf import ShelfError
from takeback_acts.files.capture.tree import Tree

_LOOSE = re.compile(r"[0-9a-f]{2}")
# An index goes before its pack: git believes in objects that an index promises.
_SUFFIXES = (".idx", ".rev", ".pack")


class Needed(NamedTuple):
    """The names of objects that baselines count on, and of files of objects, as `FOLDER/NAME`."""

    objects: set[bytes]
    files: set[bytes]


_NOTHING = Needed(set(), set())


def needed(trees: Iterable[Tree]) -> dict[int, Needed]:
    """What baselines count on, by the number of the keep."""
    found: dict[int, Needed] = {}
    for tree in trees:
        for node in walk(tree.top):
            if node.repository < 0:
                continue
            one = found.setdefault(node.repository, Needed(set(), set()))
            one.objects.update(map(oid, node.digests(Source.GIT)))
            one.files.update(node.name + b"/" + name for name in node.names_of(Source.KEPT))
    return found


def shelved(folder: Path) -> list[Tree]:
    """The baseline on the shelf of a root; one that can't be read counts on nothing."""
    try:
        known = shelf.load(folder / "baseline")
    except ShelfError:
        return []
    return [known[0]] if known is not None else []


@dataclass
class Pruned:
    """How many kept files of objects went, or would, and the bytes that only they took of the disk."""

    files: int = 0
    freed: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(self.files + other.files, self.freed + other.freed)


def prune(folder: Path, wanted: Mapping[int, Needed], *, dry_run: bool = False) -> Pruned:
    """Removes from the keeps in a folder all but what is wanted. Blocks; raises OSError.

    Of several that hold an object that no wanted file holds, one is left, rather one that the person's
    repository has too: that takes no room. An index that can't be read stays with its pack.
    """
    pruned = Pruned()
    for keep in sorted(folder.iterdir()) if folder.is_dir() else ():
        if not keep.name.isdigit():
            continue
        number = int(keep.name)
        for path, place in _spare(keep / "objects", wanted.get(number, _NOTHING)):
            _remove(path, pruned, dry_run=dry_run)
            faults.point(place)
        if number not in wanted and not dry_run:
            shutil.rmtree(keep)
        faults.point("files.prune.keep")
    return pruned


def _spare(objects: Path, wanted: Needed) -> Iterator[tuple[Path, str]]:
    """What is not wanted, in the order in which it goes."""
    if not objects.is_dir():
        return
    left = set(wanted.objects)
    fixed = {objects / os.fsdecode(name) for name in wanted.files}
    _spare_packs([path for path in fixed if path.suffix == ".pack"], left)
    _spare_loose([path for path in fixed if _LOOSE.fullmatch(path.parent.name)], left)
    packs, own_packs = _by_sharing(set((objects / "pack").glob("*.pack")) - fixed)
    loose, own_loose = _by_sharing(set(_loose(objects)) - fixed)
    spare_packs = _spare_packs(packs, left)
    spare = [*_spare_loose(loose, left), *_spare_loose(own_loose, left)]
    spare_packs += _spare_packs(own_packs, left)
    yield from ((path, "files.prune.loose") for path in spare)
    for pack in spare_packs:
        yield from ((pack.with_suffix(suffix), "files.prune.pack") for suffix in _SUFFIXES)


def _spare_packs(packs: list[Path], left: set[bytes]) -> list[Path]:
    """Takes out of `left` what these packs hold; answers those that hold nothing of it."""
    spare = []
    for pack in packs:
        names = _in_pack(pack.with_suffix(".idx"), left)
        if names:
            left -= names
        elif names is not None:
            spare.append(pack)
    return spare


def _spare_loose(paths: list[Path], left: set[bytes]) -> list[Path]:
    spare = []
    for path in paths:
        name = bytes.fromhex(path.parent.name + path.name)
        if name in left:
            left.discard(name)
        else:
            spare.append(path)
    return spare


def _in_pack(index: Path, wanted: set[bytes]) -> set[bytes] | None:
    """Those of the wanted objects that a pack holds, by its index; None when that can't be read."""
    try:
        data = index.read_bytes()
    except FileNotFoundError:
        # So much is left of a pack whose removal or linking was cut off.
        return set()
    names = gitpack.names(data, gitpack.length_in(index.stem))
    return None if names is None else {name for name in names if name in wanted}


def _by_sharing(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Those that somebody else has as well, and those that we alone have; the small ones first."""
    found = sorted((about.st_size, path, about.st_nlink > 1) for path in paths for about in (path.stat(),))
    return [path for _, path, shared in found if shared], [path for _, path, shared in found if not shared]


def _loose(objects: Path) -> Iterator[Path]:
    for fan in objects.iterdir():
        if _LOOSE.fullmatch(fan.name):
            yield from fan.iterdir()


def _remove(path: Path, pruned: Pruned, *, dry_run: bool) -> None:
    try:
        about = path.stat()
        if not dry_run:
            path.unlink()
    except FileNotFoundError:
        return
    pruned.files += 1
    pruned.freed += about.st_size if about.st_nlink == 1 else 0
