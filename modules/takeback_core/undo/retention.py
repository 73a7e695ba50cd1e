"""Retention: rows live for their time, pins stay, and what belongs together goes together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from takeback import moments
from takeback.store import Store, Transaction
from takeback_core.undo import rows
from takeback_core.undo.happenings import UndoExpired

_AT_ONCE = 500
_OPEN = ("pending", "undoing")
_OLD = "SELECT at, seq FROM undo_acted WHERE at < ? AND (at, seq) > (?, ?) ORDER BY at, seq LIMIT ?"
_MEMBER = "SELECT seq, id, at, state, pinned, parent, undone_in, redone_in FROM undo_acted WHERE "
_BOUND = _MEMBER + "id IN (?, ?, ?) OR parent = ? OR undone_in = ? OR redone_in = ?"
# An act and the undos and redos of its parts.
_PARTS = _MEMBER + (
    "seq IN (SELECT act FROM undo_touched WHERE taken_in = ?"
    " UNION SELECT act FROM undo_touched WHERE given_in = ?)"
    " OR id IN (SELECT taken_in FROM undo_touched WHERE act = ? AND taken_in IS NOT NULL"
    " UNION SELECT given_in FROM undo_touched WHERE act = ? AND given_in IS NOT NULL)"
)


class _Member(NamedTuple):
    seq: int
    id: str
    at: str
    state: str
    pinned: int
    parent: str | None
    undone_in: str | None
    redone_in: str | None


class Expiry(NamedTuple):
    """How many rows went, and how many blobs those that are left name."""

    removed: int
    live: int


async def expire(store: Store, days: float, *, dry_run: bool = False) -> Expiry:
    """Remove rows older than so many days, some at a time so that others may write; a dry run only counts.

    An act, those recorded inside it, the undos and redos that gave it its state and what these recorded
    stay as long as one of them is younger, pinned or still going on.
    """
    before = moments.stamp(datetime.now(UTC) - timedelta(days=days))
    doomed: set[int] = set()
    reached = ("", 0)
    while True:
        old = await store.transaction(lambda tx, at=reached: _sweep(tx, before, at, doomed, dry_run))  # type: ignore[misc]
        if not old:
            break
        reached = old[-1]
    if doomed and not dry_run:
        await store.transaction(lambda tx: tx.emit(UndoExpired(removed=len(doomed))))
    return Expiry(len(doomed), await store.read(lambda db: _live(db, doomed)))


def _live(db: rows.Database, doomed: set[int]) -> int:
    named = db.execute("SELECT act, digest FROM undo_blob")
    return len({digest for act, digest in map(tuple, named) if act not in doomed})


def _sweep(
    tx: Transaction, before: str, reached: tuple[str, int], doomed: set[int], dry_run: bool
) -> list[tuple[str, int]]:
    """Remove what goes of the oldest rows after a place, and note it in `doomed`; answers those rows."""
    old = [(at, seq) for at, seq in map(tuple, tx.execute(_OLD, (before, *reached, _AT_ONCE)))]
    found: set[int] = set()
    for _, seq in old:
        if seq not in found and seq not in doomed:
            found |= _family(tx, seq, before)
    if not dry_run:
        tx.executemany("DELETE FROM undo_acted WHERE seq = ?", [(seq,) for seq in found])
    doomed |= found
    return old


def _family(tx: Transaction, seq: int, before: str) -> set[int]:
    """A row and all that are bound to it, or nothing where one of them stays."""
    found: set[int] = set()
    waiting = [_Member(*row) for row in tx.execute(_MEMBER + "seq = ?", (seq,))]
    while waiting:
        one = waiting.pop()
        if one.at >= before or one.pinned or one.state in _OPEN:
            return set()
        if one.seq not in found:
            found.add(one.seq)
            links = (one.parent, one.undone_in, one.redone_in, one.id, one.id, one.id)
            near = (*tx.execute(_BOUND, links), *tx.execute(_PARTS, (one.id, one.id, one.seq, one.seq)))
            waiting += [_Member(*row) for row in near if row[0] not in found]
    return found
