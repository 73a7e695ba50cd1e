"""Sessions and turns: which conversation a call belongs to, as the client says or as its pauses show."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS

from takeback.store import Store, Transaction

SESSION_KEY = "takeback/session"
TURN_KEY = "takeback/turn"
SCHEMA = """
CREATE TABLE mcp_session (
    agent TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    seen REAL NOT NULL
) WITHOUT ROWID;
"""
_LONGEST = 200
_SAVE_AFTER = 60.0


@dataclass(slots=True)
class _Run:
    session: str
    seen: float
    saved: float


class Sessions:
    """One session an agent that ends after a pause; it outlives a restart of the daemon."""

    def __init__(self, store: Store, gap: float) -> None:
        self._store = store
        self._gap = gap
        self._runs: dict[str, _Run] = {}

    async def load(self) -> None:
        """Take up the sessions of an earlier run of the daemon."""
        rows = await self._store.read(lambda db: db.execute("SELECT * FROM mcp_session").fetchall())
        for row in rows:
            self._runs[row["agent"]] = _Run(row["session"], row["seen"], row["seen"])

    def place(self, agent: str, meta: Mapping[str, Any] | None) -> tuple[str, str | None]:
        """The session and turn of a call; raises MCPError for a name that can't be one."""
        if not meta:
            return self._current(agent), None
        session, turn = _name(meta, SESSION_KEY), _name(meta, TURN_KEY)
        return session or self._current(agent), turn

    async def save(self) -> None:
        """Store when each agent was last seen."""
        runs = list(self._runs.items())

        def store(tx: Transaction) -> None:
            for agent, run in runs:
                _save(tx, agent, run)

        await self._store.transaction(store)

    def _current(self, agent: str) -> str:
        now = time.time()
        run = self._runs.get(agent)
        if run is None or not 0 <= now - run.seen < self._gap:
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
            run = self._runs[agent] = _Run(f"{stamp}-{secrets.token_hex(3)}", now, 0.0)
        run.seen = now
        if now - run.saved > _SAVE_AFTER:
            run.saved = now
            self._store.submit(lambda tx: _save(tx, agent, run))
        return run.session


def _save(tx: Transaction, agent: str, run: _Run) -> None:
    tx.execute("INSERT OR REPLACE INTO mcp_session VALUES (?, ?, ?)", (agent, run.session, run.seen))


def _name(meta: Mapping[str, Any], key: str) -> str | None:
    value = meta.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST or not value.isprintable():
        raise MCPError(INVALID_PARAMS, f"_meta {key} must be 1 to {_LONGEST} printable characters")
    return value
