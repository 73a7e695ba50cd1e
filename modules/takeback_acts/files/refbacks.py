"""Where references of git were moved to in a window, and which of them no path of its act puts back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from takeback_acts.files.capture import gitplaces
from takeback_acts.files.capture.changes import RefMove
from takeback_acts.files.capture.gitplaces import Places
from takeback_acts.files.models import RefBack
from takeback_acts.files.paths import beneath, join, resource, shown

_SYMBOLIC = "ref: "


class Moves(NamedTuple):
    """The moves within the roots of a window, and words for those outside by the path they belong to."""

    inside: list[RefBack]
    outside: list[tuple[bytes, str]]


def of(roots: Sequence[bytes], seen: Sequence[Sequence[RefMove]]) -> Moves:
    """Tells the moves that each root has seen apart. Blocks."""
    moves = Moves([], [])
    for root, each in zip(roots, seen, strict=True):
        for work, joined in _by_work_tree(root, each).items():
            places = gitplaces.of_work_tree(work)
            if any(beneath(places.common, one) for one in roots):
                moves.inside.extend(
                    RefBack(git=resource(places.common), ref=move.ref, old=move.old, new=move.new)
                    for move in joined
                    if not move.new.startswith(_SYMBOLIC)
                )
            elif words := ", ".join(_words(places, joined)):
                where = f"its repository lies in {shown(places.common):.300}, outside of what is captured"
                moves.outside.append((join(work, b".git"), f"{words}: {where}"))
    return moves


def _by_work_tree(root: bytes, moves: Sequence[RefMove]) -> dict[bytes, list[RefMove]]:
    """Each reference once, from where it was first to where it is now."""
    found: dict[tuple[bytes, str], RefMove] = {}
    for move in moves:
        first = found.get((move.repository, move.ref), move)
        found[move.repository, move.ref] = move._replace(old=first.old)
    works: dict[bytes, list[RefMove]] = {}
    for move in found.values():
        if move.old != move.new:
            work = join(root, move.repository) if move.repository else root
            works.setdefault(work, []).append(move)
    return works


def _words(places: Places, moves: Sequence[RefMove]) -> Iterator[str]:
    """What stays of a work tree's own; all other references may have been moved from anywhere."""
    heads = {gitplaces.head(places), *(move.old for move in moves if move.ref == "HEAD")}
    for move in moves:
        if move.ref == "HEAD" or f"{_SYMBOLIC}{move.ref}" in heads:
            where = move.new.removeprefix(_SYMBOLIC)
            yield f"{move.ref} stays at {where:.40}" if where else f"{move.ref} stays deleted"
