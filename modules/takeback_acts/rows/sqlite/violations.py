"""Violations: which constraint SQLite's words speak of."""

from __future__ import annotations

import sqlite3

from takeback_acts.rows.dialect import Kind, Violation

_KINDS: dict[str, Kind] = {
    "SQLITE_CONSTRAINT_UNIQUE": "unique",
    "SQLITE_CONSTRAINT_PRIMARYKEY": "unique",
    "SQLITE_CONSTRAINT_ROWID": "unique",
    "SQLITE_CONSTRAINT_FOREIGNKEY": "foreign_key",
    "SQLITE_CONSTRAINT_CHECK": "check",
    "SQLITE_CONSTRAINT_NOTNULL": "not_null",
}


def violation(error: BaseException) -> Violation | None:
    """The constraint by name, or by its columns where it has none; None when the error is another."""
    if not isinstance(error, sqlite3.IntegrityError):
        return None
    kind = _KINDS.get(getattr(error, "sqlite_errorname", ""), "other")
    _, _, told = str(error).partition(" failed: ")
    if kind == "check":
        return Violation(kind, told)
    if kind not in ("unique", "not_null") or not told:
        return Violation(kind)
    if told.startswith("index '"):
        return Violation(kind, told[len("index '") : -1])
    table, _, _ = told.partition(".")
    columns = tuple(part.partition(".")[2] for part in told.split(", "))
    return Violation(kind, f"{'UNIQUE' if kind == 'unique' else 'NOT NULL'} {told}", table, columns)
