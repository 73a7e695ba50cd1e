"""Ending: the last transaction of an undo, the same at once and after a crash."""

from __future__ import annotations

from collections.abc import Callable

from takeback.rewinding import Rewound
from takeback.store import Store, Transaction
from takeback_core.undo import rows
from takeback_core.undo.runs import RunRecord, finish

_WHO = "coalesce(agent, actor)"


class _Rehearsed(Exception):  # noqa: N818 - it is no error: it undoes what was only tried
    pass


class Ending:
    """Ends undos: their acts get their new state, and modules clear what they derived of a session."""

    def __init__(self, store: Store, tell: Callable[[Transaction, Rewound], None]) -> None:
        self._store = store
        self._tell = tell

    async def rehearse(self, run_id: str, record: RunRecord, by: str) -> None:
        """Raise what a module says against a rewind, while everything can still be put back."""
        if record.rewound is None:
            return

        def rehearse(tx: Transaction) -> None:
            self._end(tx, run_id, record, by, None)
            raise _Rehearsed

        try:
            await self._store.transaction(rehearse)
        except _Rehearsed:
            return

    async def end(self, run_id: str, record: RunRecord, by: str, reason: str | None = None) -> None:
        """Give the acts of an undo their new state, and tell the modules, in one transaction."""
        await self._store.transaction(lambda tx: self._end(tx, run_id, record, by, reason))

    def _end(self, tx: Transaction, run_id: str, record: RunRecord, by: str, reason: str | None) -> None:
        finish(tx, run_id, record, by, reason)
        if record.rewound is not None:
            self._tell(tx, Rewound(run=run_id, **record.rewound.model_dump()))


def close_edited(tx: Transaction, rewound: Rewound) -> None:
    """Close what vanished turns did: what of it stands can't be taken back, the rest not be redone.

    What is still open is closed as soon as it is settled.

    Everything from the first act of such a turn on goes with it, as a rewind to that turn would take it.
    """
    whose, values = f"session = ? AND role = 'act' AND reason IS NOT '{rows.EDITED}'", [rewound.session]
    if rewound.agent is not None:
        whose, values = f"{whose} AND {_WHO} = ?", [*values, rewound.agent]
    named = f"{whose} AND turn IN (SELECT value FROM json_each(?))"
    sql = f"SELECT min(seq) FROM undo_acted WHERE {named}"
    first = tx.execute(sql, [*values, rows.dumps(rewound.turns)]).fetchone()[0]
    if first is None:
        return
    since = [*values, first]
    tx.execute(
        "UPDATE undo_acted SET state = CASE WHEN state IN ('done', 'failed') THEN 'final' ELSE state END,"
        f" reason = '{rows.EDITED}' WHERE {whose} AND seq >= ?"
        " AND state <> 'abandoned'",
        since,
    )
