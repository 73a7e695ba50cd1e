"""Parts: what was taken back of an act by itself, while the rest of it stands."""

from __future__ import annotations

from collections.abc import Iterable

from takeback_core.undo.rows import Database

_TAKEN = "UPDATE undo_touched SET taken_in = ?, given_in = NULL WHERE act = ? AND resource = ?"
_GIVEN = (
    "UPDATE undo_touched SET taken_in = NULL, given_in = ?, stands = ?"
    " WHERE act = ? AND resource = ? AND taken_in IS NOT NULL"
)


def take(db: Database, seq: int, part: Iterable[str], run: str) -> None:
    """Note that an undo took back these resources of an act."""
    for name in part:
        db.execute(_TAKEN, (run, seq, name))


def give(db: Database, seq: int, part: Iterable[str], run: str, since: int) -> None:
    """Note that a redo brought these resources of an act again, by a row of its own."""
    for name in part:
        db.execute(_GIVEN, (run, since, seq, name))


def join(db: Database, seq: int) -> None:
    """Note that all of an act which was not taken back has its state from one undo or redo."""
    db.execute("UPDATE undo_touched SET given_in = NULL WHERE act = ? AND given_in IS NOT NULL", (seq,))
