"""Notes: how the person's prompts begin, of conversations that nobody keeps here."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from takeback import moments
from takeback.store import Transaction
from takeback_core.sessions import conversations
from takeback_core.sessions.conversations import Database

LONGEST = 200
_KEPT = timedelta(days=30)


def note(tx: Transaction, agent: str, session: str, turn: str, text: str) -> None:
    """Note how a prompt begins, unless its conversation is kept with all its messages."""
    forget_old(tx)
    if not conversations.find(tx, agent, session):
        tx.execute(
            "INSERT OR IGNORE INTO sessions_noted (agent, session, turn, text, at) VALUES (?, ?, ?, ?, ?)",
            (agent, session, turn, text.strip()[:LONGEST], moments.stamp()),
        )


def texts(db: Database, agent: str, session: str) -> dict[str, str]:
    """How the prompts of a session begin, by their turns."""
    sql = "SELECT turn, text FROM sessions_noted WHERE agent = ? AND session = ?"
    return {row["turn"]: row["text"] for row in db.execute(sql, (agent, session))}


def forget_old(tx: Transaction) -> None:
    """Forget what is past its time."""
    tx.execute("DELETE FROM sessions_noted WHERE at < ?", (moments.stamp(datetime.now(UTC) - _KEPT),))


def forget_all(tx: Transaction) -> None:
    """Forget every note."""
    tx.execute("DELETE FROM sessions_noted")
