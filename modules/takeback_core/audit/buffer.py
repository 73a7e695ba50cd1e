"""Between a call and the disk: rows wait in memory, so that no call waits for the audit."""

from __future__ import annotations

import time

import anyio

from takeback.router import CallRecord

# About 15 MB; a disk that is slower than this many calls loses rows, and the log then says how many.
_MOST = 50_000
_BATCH_ROWS = 500
_BATCH_SECONDS = 0.5


class Buffer:
    """Call records on their way to the store, bounded; what finds no room is counted, not forgotten."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._rows: list[CallRecord] = []
        self._dropped = 0
        self._started = anyio.Event()
        self._filled = anyio.Event()

    def note(self, record: CallRecord) -> None:
        """Keep a record; this is on every call's path, so it does next to nothing."""
        rows = self._rows
        count = len(rows)
        if count == 0:
            self._started.set()
        elif count == _BATCH_ROWS:
            self._filled.set()
        elif count >= self._most:
            self._dropped += 1
            return
        rows.append(record)

    async def batch(self) -> None:
        """Return when a batch is due: many rows, or some that have waited long enough."""
        await self._started.wait()
        with anyio.move_on_after(_BATCH_SECONDS):
            await self._filled.wait()

    def take(self) -> list[CallRecord]:
        """Everything that waits, with a row of its own for what was dropped meanwhile."""
        rows, self._rows = self._rows, []
        self._started, self._filled = anyio.Event(), anyio.Event()
        if self._dropped:
            rows.append(_dropped_row(self._dropped))
            self._dropped = 0
        return rows

    def give_back(self, rows: list[CallRecord]) -> None:
        """Put rows in front again that could not be written."""
        room = max(0, self._most - len(self._rows))
        self._dropped += max(0, len(rows) - room)
        self._rows[:0] = rows[:room]
        self._started.set()


def _dropped_row(count: int) -> CallRecord:
    me, now = "module:audit", time.time_ns()
    return CallRecord(
        id=f"dropped-{now:x}",
        parent=None,
        at=now,
        duration_ns=0,
        caller=me,
        origin=me,
        tool="audit.rows",
        allowed=True,
        rule="",
        reason=f"the disk was slower than the calls: {count} rows were not written",
        outcome="audit.dropped",
    )
