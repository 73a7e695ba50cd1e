"""The table of events: written inside a transaction, read by whoever reconnects."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from takeback.errors import TakebackError
from takeback.moments import stamp

# AUTOINCREMENT, because a number that was pruned must never be given to a later event.
TABLE = """
CREATE TABLE kernel_outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL
) STRICT;
"""


class Event(BaseModel):
    """Something that happened and is committed; a subclass names its `kind` and its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ClassVar[str]


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as the outbox keeps it: number, time (ISO 8601, UTC, milliseconds), kind and fields."""

    seq: int
    at: str
    kind: str
    data: dict[str, Any]


def write(connection: sqlite3.Connection, event: Event) -> int:
    """Adds an event to the open transaction and returns its number."""
    row = (stamp(), event.kind, event.model_dump_json())
    cursor = connection.execute("INSERT INTO kernel_outbox (at, kind, data) VALUES (?, ?, ?)", row)
    return cursor.lastrowid or 0


def last(connection: sqlite3.Connection) -> int:
    """The number of the newest event ever written, pruned or not; 0 before the first."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'kernel_outbox'").fetchone()
    return int(row[0]) if row else 0


def after(connection: sqlite3.Connection, seq: int, limit: int) -> list[StoredEvent]:
    """Up to `limit` events that follow number `seq`, oldest first; 0 asks for whatever is still kept.

    Raises `events.gone` when some that followed `seq` are kept no longer, or `seq` was never given out.
    """
    if seq > 0:
        _require_kept(connection, seq)
    rows = connection.execute(
        "SELECT seq, at, kind, data FROM kernel_outbox WHERE seq > ? ORDER BY seq LIMIT ?", (seq, limit)
    )
    return [StoredEvent(number, at, kind, json.loads(data)) for number, at, kind, data in rows]


def prune(connection: sqlite3.Connection, before: datetime, keep: int) -> int:
    """Deletes events older than `before` except the newest `keep`, and says how many went."""
    cursor = connection.execute(
        "DELETE FROM kernel_outbox WHERE seq <= ? AND at < ?", (last(connection) - keep, stamp(before))
    )
    return cursor.rowcount


def _require_kept(connection: sqlite3.Connection, seq: int) -> None:
    newest = last(connection)
    if seq == newest:
        return
    oldest = connection.execute("SELECT min(seq) FROM kernel_outbox").fetchone()[0]
    if seq > newest or oldest is None or seq < oldest - 1:
        raise TakebackError(
            "events.gone",
            f"The events that followed number {seq} are not kept.",
            f"Read the whole state again, then follow from number {newest}.",
            data={"last": newest},
        )
