"""Lost: what was not captured, and why, for the person to read."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from takeback.store import Store, Transaction

TABLE = """
CREATE TABLE hook_lost (
    at INTEGER NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    what TEXT NOT NULL,
    why TEXT NOT NULL
);
"""
_KEPT = 500
_LONGEST = 500


class Loss(NamedTuple):
    """One thing that can't be taken back: `at` in nanoseconds since 1970, in whose session, what and why."""

    at: int
    agent: str
    session: str
    what: str
    why: str


class Lost:
    """The last few losses. They are known here also when the disk is full, which may be why."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: deque[Loss] = deque(maxlen=_KEPT)

    async def load(self) -> None:
        """Recalls what earlier processes noted."""
        sql = "SELECT at, agent, session, what, why FROM hook_lost ORDER BY rowid"
        rows = await self._store.read(lambda db: db.execute(sql).fetchall())
        self._known.extend(Loss(*row) for row in rows)

    def note(self, agent: str, session: str, what: str, why: str) -> None:
        """Notes one; waits for nothing."""
        loss = Loss(time.time_ns(), agent, session, what[:_LONGEST], why[:_LONGEST])
        self._known.append(loss)
        self._store.submit(lambda tx: _insert(tx, loss), ride=True)

    def since(self, moment_ns: int) -> list[Loss]:
        """Those after a moment, the newest first."""
        return [loss for loss in reversed(self._known) if loss.at > moment_ns]


def _insert(tx: Transaction, loss: Loss) -> None:
    tx.execute("INSERT INTO hook_lost VALUES (?, ?, ?, ?, ?)", loss)
    tx.execute(
        "DELETE FROM hook_lost WHERE rowid <= (SELECT max(rowid) FROM hook_lost) - ?",
        (_KEPT,),
    )
