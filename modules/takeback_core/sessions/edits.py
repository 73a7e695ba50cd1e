"""Edits as rows: those that wait for their roll-back, and those that were made, for whoever asks again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from takeback import moments
from takeback.store import Transaction
from takeback_core.sessions.conversations import Database, Kept

_REMEMBERED = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class EditRow:
    """An edit; `asked` is what stands for all that was asked with its key, None where it had none."""

    id: str
    agent: str
    session: str
    turn: str
    text: str
    asked: str | None
    note: str
    made: bool


def add(tx: Transaction, row: EditRow) -> None:
    """Note an edit, and forget those that nobody will ask for again."""
    oldest = moments.stamp(datetime.now(UTC) - _REMEMBERED)
    tx.execute("DELETE FROM sessions_edit WHERE made AND at < ?", (oldest,))
    tx.execute(
        "INSERT INTO sessions_edit (id, agent, session, turn, text, at, asked, note, made)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            row.id,
            row.agent,
            row.session,
            row.turn,
            row.text,
            moments.stamp(),
            row.asked,
            row.note,
            row.made,
        ),
    )


def find(db: Database, id: str) -> EditRow | None:
    """The edit of an id."""
    return next(map(_row, db.execute("SELECT * FROM sessions_edit WHERE id = ?", (id,))), None)


def waiting(db: Database, kept: Kept | None = None) -> list[str]:
    """The edits that wait, of one conversation or of all."""
    sql = "SELECT id FROM sessions_edit WHERE NOT made"
    if kept is not None:
        sql = f"{sql} AND agent = :agent AND session = :session"
    return [row["id"] for row in db.execute(sql, {} if kept is None else kept.key)]


def end(tx: Transaction, id: str, note: str = "") -> None:
    """Note that an edit was made; its text is in the conversation now. Without a key it is forgotten."""
    tx.execute("DELETE FROM sessions_edit WHERE id = ? AND asked IS NULL", (id,))
    tx.execute("UPDATE sessions_edit SET made = 1, text = '', note = ? WHERE id = ?", (note, id))


def forget(tx: Transaction, id: str) -> None:
    """Forget an edit that waited and will not be made."""
    tx.execute("DELETE FROM sessions_edit WHERE id = ? AND NOT made", (id,))


def _row(row: Any) -> EditRow:
    names = ("id", "agent", "session", "turn", "text", "asked", "note")
    return EditRow(**{name: row[name] for name in names}, made=bool(row["made"]))
