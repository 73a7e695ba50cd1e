"""Retention: rows live for their time, pins stay, and what belongs together goes together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from takeback.store import Store, Transaction
from takeback_core.undo import rows
from takeback_core.undo.happenings import UndoExpired

_AT_ONCE = 500
_OPEN = ("pending", "undoing")
_OLD = "SELECT at, seq FROM undo_acted WHERE at < ? AND (at, seq) > (?, ?) ORDER BY at, seq LIMIT ?"
_MEMBER = "SELECT seq, id, at, state, pinned, parent, undone_in, redone_in FROM undo_acted WHERE "
_BOUND = _MEMBER + "id IN (?, ?, ?) OR parent = ? OR undone_in = ? OR redone_in = ?"


class _Member(NamedTuple):
    seq: int
    id: str
    at: str
    state: str
    pinned: int
    parent: str | None
    undone_in: str | None
    redone_in: str | None


async def expire(store: Store, days: float) -> int:
    """Remove rows older than so many days, some at a time so that others may write; answers how many.

    An act, those recorded inside it, the undos and redos that gave it its state and what these recorded
    stay as long as one of them is younger, pinned or still going on.
    """
    before = rows.iso(datetime.now(UTC) - timedelta(days=days))
    removed, reached = 0, ("", 0)
    while True:
        old, gone = await store.transaction(lambda tx, reached=reached: _sweep(tx, before, reached))  # type: ignore[misc]
        removed += gone
        if not old:
            break
        reached = old[-1]
    if removed:
        await store.transaction(lambda tx: tx.emit(UndoExpired(removed=removed)))
    return removed


def _sweep(tx: Transaction, before: str, reached: tuple[str, int]) -> tuple[list[tuple[str, int]], int]:
    """Remove what goes of the oldest rows after a place; answers the rows looked at, and how many went."""
    old = [(at, seq) for at, seq in map(tuple, tx.execute(_OLD, (before, *reached, _AT_ONCE)))]
    doomed: set[int] = set()
    for _, seq in old:
        if seq not in doomed:
            doomed |= _family(tx, seq, before)
    tx.executemany("DELETE FROM undo_acted WHERE seq = ?", [(seq,) for seq in doomed])
    return old, len(doomed)


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
            waiting += [_Member(*row) for row in tx.execute(_BOUND, links) if row[0] not in found]
    return found
