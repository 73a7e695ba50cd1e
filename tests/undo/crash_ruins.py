"""What a kill left on the disk, told so that two ruins of the same content are told the same."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

_ENTRY = re.compile(r'"entry":"([0-9a-f-]{36})"')
_ROWS = (
    "SELECT id, role, actor, session, parent, subject, tool, input, summary, inverse_tool, inverse_input,"
    " state, reason, error, tries, undone_by, undone_in, redone_in, lease_owner IS NULL"
    " FROM undo_acted ORDER BY seq"
)
_TOUCHED = (
    "SELECT act, resource, before, after, stands - act, taken_in, given_in"
    " FROM undo_touched ORDER BY act, resource"
)


def content(place: Path) -> str:
    """All that decides what becomes of a ruin: rows, ids apart, the files of the cabinet, and the ledger."""
    files = sorted(path for path in (place / "cabinet").rglob("*") if path.is_file() and path.name != "part")
    told = repr((_log(place / "home"), [(path.name, path.read_text()) for path in files], _ledger(place)))
    for index, entry in enumerate(dict.fromkeys(_ENTRY.findall(told))):
        told = told.replace(entry, f"entry {index}")
    return told


def _ledger(place: Path) -> list[tuple[Any, ...]]:
    """The entries of a ledger, and what is written down beside them."""
    if not (place / "ledger.db").exists():
        return []
    connection = sqlite3.connect(place / "ledger.db")
    try:
        entries = connection.execute("SELECT key, value FROM entry ORDER BY key").fetchall()
        return entries + connection.execute("SELECT id, changes FROM journal ORDER BY rowid").fetchall()
    finally:
        connection.close()


def _log(home: Path) -> str:
    [database] = home.rglob("takeback.db")
    connection = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
    try:
        rows: list[tuple[Any, ...]] = connection.execute(_ROWS).fetchall()
        touched = connection.execute(_TOUCHED).fetchall()
    finally:
        connection.close()
    seqs = {seq: index for index, seq in enumerate(sorted({seq for seq, *_ in touched}))}
    told = repr((rows, [(seqs[seq], *rest) for seq, *rest in touched]))
    for index, (row_id, *_) in enumerate(rows):
        told = told.replace(row_id, f"#{index}")
    return told
