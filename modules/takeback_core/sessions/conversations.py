"""Conversations as rows: who keeps them, their messages in order, and what an edit makes of them."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from takeback import moments
from takeback.store import Transaction
from takeback_core.sessions.models import Message

Database = sqlite3.Connection | Transaction


@dataclass(frozen=True, slots=True)
class Kept:
    """A conversation that somebody keeps; `running` is the turn under way."""

    agent: str
    session: str
    owner: str
    title: str
    at: str
    running: str | None


def find(db: Database, agent: str | None, session: str) -> list[Kept]:
    """The conversations of a name: one at most for an agent, one for each agent without."""
    where, values = "session = ?", [session]
    if agent is not None:
        where, values = "session = ? AND agent = ?", [session, agent]
    rows = db.execute(f"SELECT * FROM sessions_conversation WHERE {where} ORDER BY agent", values)
    return [_kept(row) for row in rows]


def every(db: Database, agent: str | None) -> list[Kept]:
    """All conversations, or those of an agent."""
    sql = "SELECT * FROM sessions_conversation WHERE ?1 IS NULL OR agent = ?1"
    return [_kept(row) for row in db.execute(sql, (agent,))]


def open_one(tx: Transaction, agent: str, session: str, owner: str, title: str) -> Kept:
    """A conversation, made where there is none; it keeps its first owner."""
    tx.execute(
        "INSERT OR IGNORE INTO sessions_conversation (agent, session, owner, title, at)"
        " VALUES (?, ?, ?, ?, ?)",
        (agent, session, owner, title, moments.stamp()),
    )
    return find(tx, agent, session)[0]


def messages(db: Database, kept: Kept) -> list[Message]:
    """The messages of a conversation, oldest first."""
    sql = "SELECT turn, text, at, state FROM sessions_message WHERE agent = ? AND session = ? ORDER BY place"
    rows = db.execute(sql, (kept.agent, kept.session))
    return [Message(turn=row[0], text=row[1], at=row[2], state=row[3]) for row in map(tuple, rows)]


def say(tx: Transaction, kept: Kept, turn: str, text: str) -> bool:
    """Append a message that is to be run; false when the conversation has a turn of that name."""
    sql = (
        "INSERT OR IGNORE INTO sessions_message (agent, session, place, turn, text, at, state)"
        " SELECT ?1, ?2, coalesce(max(place), 0) + 1, ?3, ?4, ?5, 'due' FROM sessions_message"
        " WHERE agent = ?1 AND session = ?2"
    )
    return tx.execute(sql, (kept.agent, kept.session, turn, text, moments.stamp())).rowcount > 0


def mark(tx: Transaction, kept: Kept, turn: str, state: str) -> bool:
    """Give a message a state, and the conversation its running turn; false when there is no such message."""
    sql = "UPDATE sessions_message SET state = ? WHERE agent = ? AND session = ? AND turn = ?"
    if not tx.execute(sql, (state, kept.agent, kept.session, turn)).rowcount:
        return False
    running = turn if state == "running" else None
    sql = "UPDATE sessions_conversation SET running = ? WHERE agent = ? AND session = ?"
    tx.execute(sql, (running, kept.agent, kept.session))
    return True


def cut_off(tx: Transaction) -> None:
    """End what was running in an earlier process; what it did stands, and can be rolled back."""
    tx.execute("UPDATE sessions_message SET state = 'cut' WHERE state = 'running'")
    tx.execute("UPDATE sessions_conversation SET running = NULL WHERE running IS NOT NULL")


def truncate(tx: Transaction, kept: Kept, turn: str, text: str) -> bool:
    """End a conversation with a message that says something else now; false when it has no such message."""
    key = {"agent": kept.agent, "session": kept.session, "turn": turn, "text": text}
    place = (
        "(SELECT place FROM sessions_message WHERE agent = :agent AND session = :session AND turn = :turn)"
    )
    tx.execute(
        f"DELETE FROM sessions_message WHERE agent = :agent AND session = :session AND place > {place}", key
    )
    changed = tx.execute(
        "UPDATE sessions_message SET text = :text, state = 'due'"
        " WHERE agent = :agent AND session = :session AND turn = :turn",
        key,
    )
    return changed.rowcount > 0


def _kept(row: Any) -> Kept:
    return Kept(row["agent"], row["session"], row["owner"], row["title"], row["at"], row["running"])
