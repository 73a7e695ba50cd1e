"""The table of calls: batches in, pages out, old rows away."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from takeback.moments import stamp
from takeback.router import CallRecord
from takeback.store import Transaction
from takeback_core.audit.models import Query, Row

SCHEMA = """
CREATE TABLE audit_call (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    parent TEXT,
    at INTEGER NOT NULL,
    caller TEXT NOT NULL,
    origin TEXT NOT NULL,
    tool TEXT NOT NULL,
    allowed INTEGER NOT NULL,
    reason TEXT NOT NULL,
    outcome TEXT NOT NULL,
    duration_us INTEGER NOT NULL
);
CREATE INDEX audit_call_id ON audit_call (id);
CREATE INDEX audit_call_parent ON audit_call (parent) WHERE parent IS NOT NULL;
"""
RULE = "ALTER TABLE audit_call ADD COLUMN rule TEXT NOT NULL DEFAULT '';"

_ADD = """
INSERT INTO audit_call (id, parent, at, caller, origin, tool, allowed, rule, reason, outcome, duration_us)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_CHILDREN = 1000


def write(tx: Transaction, records: Iterable[CallRecord]) -> None:
    """Store call records; `at` becomes microseconds since the epoch."""
    tx.executemany(_ADD, [_columns(record) for record in records])


def page(db: sqlite3.Connection, query: Query, since: int | None) -> tuple[list[Row], int | None]:
    """The rows that a query asks for, newest first, and the cursor of the next page."""
    where, values = _conditions(query, since)
    sql = f"SELECT * FROM audit_call {where} ORDER BY seq DESC LIMIT ?"
    found = db.execute(sql, (*values, query.limit + 1)).fetchall()
    shown = found[: query.limit]
    following = shown[-1]["seq"] if len(found) > query.limit else None
    return [_row(row) for row in shown], following


def one(db: sqlite3.Connection, call: str) -> tuple[Row, list[Row]] | None:
    """A call by id and the calls made within it, oldest first."""
    found = db.execute("SELECT * FROM audit_call WHERE id = ?", (call,)).fetchone()
    if found is None:
        return None
    sql = "SELECT * FROM audit_call WHERE parent = ? ORDER BY at, seq LIMIT ?"
    return _row(found), [_row(row) for row in db.execute(sql, (call, _CHILDREN))]


def forget(tx: Transaction, before: int, at_most: int) -> int:
    """Remove up to `at_most` of the oldest rows that began before a moment; how many there were."""
    sql = """
    DELETE FROM audit_call WHERE seq IN (SELECT seq FROM audit_call ORDER BY seq LIMIT ?) AND at < ?
    """
    return int(tx.execute(sql, (at_most, before)).rowcount)


def _conditions(query: Query, since: int | None) -> tuple[str, list[Any]]:
    wanted = {
        "caller = ?": query.caller,
        "tool = ?": query.tool,
        "allowed = ?": query.allowed,
        "at >= ?": since,
        "seq < ?": query.cursor,
    }
    parts = {test: value for test, value in wanted.items() if value is not None}
    return ("WHERE " + " AND ".join(parts) if parts else ""), list(parts.values())


def _columns(one: CallRecord) -> tuple[Any, ...]:
    at, took = one.at // 1000, one.duration_ns // 1000
    who = (one.caller, one.origin, one.tool)
    return (one.id, one.parent, at, *who, one.allowed, one.rule, one.reason, one.outcome, took)


def _row(row: sqlite3.Row) -> Row:
    values: dict[str, Any] = dict(row)
    del values["seq"]
    moment = stamp(values["at"] / 1_000_000)
    return Row(**{**values, "at": moment, "allowed": bool(values["allowed"])})
