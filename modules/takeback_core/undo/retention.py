"""Retention: rows live for their time, pins stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from takeback.store import Store, Transaction
from takeback_core.undo import rows
from takeback_core.undo.happenings import UndoExpired

_AT_ONCE = 2000
_EXPIRED = (
    "SELECT seq FROM undo_acted WHERE at < ? AND pinned = 0 AND state NOT IN ('pending', 'undoing')"
    " AND (parent IS NULL OR parent NOT IN (SELECT id FROM undo_acted WHERE pinned = 1))"
    " LIMIT ?"
)


async def expire(store: Store, days: float) -> int:
    """Remove rows older than so many days, some at a time so that others may write; answers how many."""
    before = rows.iso(datetime.now(UTC) - timedelta(days=days))
    removed = 0
    while gone := await store.transaction(lambda tx: _remove(tx, before)):
        removed += gone
    if removed:
        await store.transaction(lambda tx: tx.emit(UndoExpired(removed=removed)))
    return removed


def _remove(tx: Transaction, before: str) -> int:
    seqs = [found[0] for found in tx.execute(_EXPIRED, (before, _AT_ONCE)).fetchall()]
    tx.executemany("DELETE FROM undo_acted WHERE seq = ?", [(seq,) for seq in seqs])
    return len(seqs)
