"""Untold: acts of this process of which their owner could not tell whether they have happened."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from takeback.context import Context
from takeback.errors import TakebackError
from takeback.store import Store
from takeback_core.undo import rows
from takeback_core.undo.recorder import Recorder


class Untold:
    """Remembers them until the owner can be asked: who waits for the next start has an act that nobody can
    take back for as long as this one runs."""

    def __init__(self, store: Store, recorder: Recorder) -> None:
        self._store = store
        self._recorder = recorder
        self._ids: set[str] = set()

    def note(self, row_id: str) -> None:
        """Note a pending row whose owner can't tell now."""
        self._ids.add(row_id)

    async def ask_again(self, ctx: Context) -> None:
        """Ask the owners; those who still can't tell are asked the next time."""
        for row_id in sorted(self._ids):
            row = await self._store.read(partial(rows.one, row_id=row_id))
            with suppress(TakebackError):
                if row is None or row.state != "pending" or await self._recorder.hear(ctx, row):
                    self._ids.discard(row_id)
