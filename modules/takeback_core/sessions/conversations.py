"""Conversations as rows: who keeps them, their messages in order, and what an edit makes of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from takeback import moments
from takeback.store import Transaction
from takeback_core.sessions.models import Message

Database = sqlite3.Connection | Transaction

_KEPT = (
    "SELECT c.*, coalesce((SELECT at FROM sessions_message m WHERE m.agent = c.agent"
    " AND m.session = c.session ORDER BY place DESC LIMIT 1), c.at) AS last FROM sessions_conversation c"
)
_OF = "agent = :agent AND session = :session"
_TURN = f"{_OF} AND turn = :turn"
_FIELDS = "turn, text, at, state"


@dataclass(frozen=True, slots=True)
class Kept:
    """A conversation that somebody keeps; `last` is when its newest message was said, `running` its turn."""

    agent: str
    session: str
    owner: str
    title: str
    at: str
    last: str
    running: str | None

    @property
    def key(self) -> dict[str, str]:
        """What it is found by."""
        return {"agent": self.agent, "session": self.session}


def find(db: Database, agent: str | None, session: str) -> list[Kept]:
    """The conversations of a name: one at most for an agent, one for each agent without."""
    where, values = "c.session = ?", [session]
    if agent is not None:
        where, values = "c.session = ? AND c.agent = ?", [session, agent]
    return _kept(db.execute(f"{_KEPT} WHERE {where} ORDER BY c.agent", values))


def every(db: Database, agent: str | None) -> list[Kept]:
    """All conversations, or those of an agent."""
    return _kept(db.execute(f"{_KEPT} WHERE ?1 IS NULL OR c.agent = ?1", (agent,)))


def open_one(tx: Transaction, agent: str, session: str, owner: str, title: str) -> Kept:
    """A conversation, made where there is none; it keeps its first owner."""
    tx.execute(
        "INSERT OR IGNORE INTO sessions_conversation (agent, session, owner, title, at)"
        " VALUES (?, ?, ?, ?, ?)",
        (agent, session, owner, title, moments.stamp()),
    )
    return find(tx, agent, session)[0]


def messages(db: Database, kept: Kept, *, longest: int = -1) -> list[Message]:
    """The messages of a conversation, oldest first, of each no more than its `longest` first characters."""
    text = "text" if longest < 0 else f"substr(text, 1, {longest}) AS text"
    sql = f"SELECT turn, {text}, at, state FROM sessions_message WHERE {_OF} ORDER BY place"
    return [_message(row) for row in db.execute(sql, kept.key)]


def turns(db: Database, kept: Kept) -> list[str]:
    """The turns of a conversation's messages, oldest first."""
    sql = f"SELECT turn FROM sessions_message WHERE {_OF} ORDER BY place"
    return [row["turn"] for row in db.execute(sql, kept.key)]


def message(db: Database, kept: Kept, turn: str) -> Message | None:
    """One message of a conversation."""
    sql = f"SELECT {_FIELDS} FROM sessions_message WHERE {_TURN}"
    return next((_message(row) for row in db.execute(sql, kept.key | {"turn": turn})), None)


def say(tx: Transaction, kept: Kept, turn: str, text: str) -> bool:
    """Append a message that is to be run; false when the conversation has a turn of that name."""
    sql = (
        "INSERT OR IGNORE INTO sessions_message (agent, session, place, turn, text, at, state)"
        " SELECT :agent, :session, coalesce(max(place), 0) + 1, :turn, :text, :at, 'due'"
        f" FROM sessions_message WHERE {_OF}"
    )
    given = kept.key | {"turn": turn, "text": text, "at": moments.stamp()}
    return tx.execute(sql, given).rowcount > 0


def mark(tx: Transaction, kept: Kept, turn: str, state: str) -> Message | None:
    """Give a message a state, and the conversation the turn that is under way; None for an unknown turn."""
    key = kept.key | {"turn": turn, "state": state}
    if not tx.execute(f"UPDATE sessions_message SET state = :state WHERE {_TURN}", key).rowcount:
        return None
    if state == "running":
        tx.execute(f"UPDATE sessions_conversation SET running = :turn WHERE {_OF}", key)
    else:
        tx.execute(f"UPDATE sessions_conversation SET running = NULL WHERE {_OF} AND running = :turn", key)
    return message(tx, kept, turn)


def cut_off(tx: Transaction) -> None:
    """End what was running in an earlier process; what it did stands, and can be rolled back."""
    tx.execute("UPDATE sessions_message SET state = 'cut' WHERE state = 'running'")
    tx.execute("UPDATE sessions_conversation SET running = NULL WHERE running IS NOT NULL")


def truncate(tx: Transaction, kept: Kept, turn: str, text: str) -> bool:
    """End a conversation with a message that says something else now; false when it has no such message."""
    key = kept.key | {"turn": turn, "text": text}
    place = f"(SELECT place FROM sessions_message WHERE {_TURN})"
    tx.execute(f"DELETE FROM sessions_message WHERE {_OF} AND place > {place}", key)
    changed = tx.execute(f"UPDATE sessions_message SET text = :text, state = 'due' WHERE {_TURN}", key)
    return changed.rowcount > 0


def _kept(rows: Iterable[Any]) -> list[Kept]:
    names = ("agent", "session", "owner", "title", "at", "last", "running")
    return [Kept(*(row[name] for name in names)) for row in rows]


def _message(row: Any) -> Message:
    return Message(turn=row["turn"], text=row["text"], at=row["at"], state=row["state"])
