"""Keys: what became of the undos that were asked for with one."""

from __future__ import annotations

from takeback_core.undo import rows
from takeback_core.undo.records import results_of
from takeback_core.undo.rows import Database
from takeback_core.undo.runs import run_record
from takeback_core.undo.session_models import KeyedUndo


def keyed(db: Database, key: str) -> KeyedUndo:
    """What became of the undo with a key, whoever asked for it."""
    found = rows.many(db, "a.run_key = ?", [key])
    if not found:
        return KeyedUndo()
    row = found[0]
    if row.state not in ("done", "undone"):
        return KeyedUndo(act=row.id, open=True)
    record = run_record(row)
    return KeyedUndo(act=row.id, plan=record.plan, results=results_of(record))
