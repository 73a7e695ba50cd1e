"""Pruning: kept objects of git that no baseline counts on any more are let go.

What is kept is everything that a repository had when it was looked at. Once its `git gc` has packed that
anew, the old packs and loose objects take room for us alone.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from takeback import faults
from takeback_acts.files.capture.node import walk
from takeback_acts.files.capture.row import Source, oid
from takeback_acts.files.capture.tree import Tree

_LOOSE = re.compile(r"[0-9a-f]{2}")
_FAN = 256 * 4
_MAGIC = b"\377tOc\0\0\0\2"
# An index goes before its pack: git believes in objects that an index promises.
_SUFFIXES = (".idx", ".rev", ".pack")


def needed(trees: Iterable[Tree]) -> dict[int, set[bytes]]:
    """The names of the objects that baselines count on, by the number of the keep."""
    found: dict[int, set[bytes]] = {}
    for tree in trees:
        for node in walk(tree.top):
            if node.repository >= 0:
                found.setdefault(node.repository, set()).update(map(oid, node.digests(Source.GIT)))
    return found


def prune(folder: Path, wanted: dict[int, set[bytes]]) -> None:
    """Removes from the keeps in a folder all but what is wanted. Blocks; raises OSError.

    Of several that hold an object, one is left, rather one that the person's repository has too: that takes
    no room. An index that can't be read stays with its pack.
    """
    for keep in sorted(folder.iterdir()) if folder.is_dir() else ():
        if not keep.name.isdigit():
            continue
        if int(keep.name) in wanted:
            _prune(keep / "objects", set(wanted[int(keep.name)]))
        else:
            shutil.rmtree(keep)
        faults.point("files.prune.keep")


def _prune(objects: Path, left: set[bytes]) -> None:
    packs, own_packs = _by_sharing((objects / "pack").glob("*.pack"))
    loose, own_loose = _by_sharing(_loose(objects))
    spare_packs = _spare_packs(packs, left)
    spare = [*_spare_loose(loose, left), *_spare_loose(own_loose, left)]
    spare_packs += _spare_packs(own_packs, left)
    for path in spare:
        path.unlink()
        faults.point("files.prune.loose")
    for pack in spare_packs:
        _remove(pack)


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
    if data[: len(_MAGIC)] != _MAGIC or len(data) < len(_MAGIC) + _FAN:
        return None
    start = len(_MAGIC) + _FAN
    count = int.from_bytes(data[start - 4 : start], "big")
    # The pack's name tells how long names are: it is a hash itself.
    length = (len(index.stem) - len("pack-")) // 2
    if start + count * (length + 8) + 2 * length > len(data):
        return None
    names = (data[at : at + length] for at in range(start, start + count * length, length))
    return {name for name in names if name in wanted}


def _by_sharing(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Those that somebody else has as well, and those that we alone have; the small ones first."""
    found = sorted((about.st_size, path, about.st_nlink > 1) for path in paths for about in (path.stat(),))
    return [path for _, path, shared in found if shared], [path for _, path, shared in found if not shared]


def _loose(objects: Path) -> Iterator[Path]:
    for fan in objects.iterdir():
        if _LOOSE.fullmatch(fan.name):
            yield from fan.iterdir()


def _remove(pack: Path) -> None:
    for suffix in _SUFFIXES:
        pack.with_suffix(suffix).unlink(missing_ok=True)
        faults.point("files.prune.pack")
