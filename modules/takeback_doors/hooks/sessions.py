"""Sessions: the conversations that agents are in, each with its turn, its folders and its process."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from takeback_doors.hooks.events import Event
from takeback_doors.hooks.processes import Process

if TYPE_CHECKING:
    import sqlite3

    from takeback.store import Store

TABLE = """
CREATE TABLE hook_session (
    agent TEXT NOT NULL,
    id TEXT NOT NULL,
    turn TEXT,
    turns INTEGER NOT NULL,
    folder TEXT NOT NULL,
    roots TEXT NOT NULL,
    pid INTEGER NOT NULL,
    born TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (agent, id)
) WITHOUT ROWID;
"""
_KEPT = 30 * 86_400
_SAVE = "INSERT OR REPLACE INTO hook_session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_MOST_ROOTS = 16


@dataclass(slots=True)
class Session:
    """One conversation. `roots` is what is captured; `at` is when it was last heard of, in seconds."""

    agent: str
    id: str
    turn: str | None = None
    turns: int = 0
    folder: str = ""
    roots: tuple[str, ...] = ()
    process: Process | None = None
    at: float = 0.0

    @property
    def key(self) -> tuple[str, str]:
        """What it is found by."""
        return self.agent, self.id

    def add_roots(self, roots: list[str]) -> None:
        """Captures some more folders, up to a limit."""
        self.roots = tuple(dict.fromkeys((*self.roots, *roots)))[:_MOST_ROOTS]


class Sessions:
    """Those that were heard of in the last weeks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[tuple[str, str], Session] = {}

    async def load(self) -> None:
        """Recalls what earlier processes knew, but for what is long over."""
        oldest = int(time.time()) - _KEPT
        await self._store.transaction(
            lambda tx: tx.execute("DELETE FROM hook_session WHERE at < ?", (oldest,))
        )
        rows = await self._store.read(lambda db: db.execute("SELECT * FROM hook_session").fetchall())
        self._known = {(row["agent"], row["id"]): _session(row) for row in rows}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, agent: str, id: str) -> Session | None:
        """The session of an id."""
        return self._known.get((agent, id))

    def meet(self, event: Event, process: Process | None) -> Session:
        """The session that an event belongs to; one that does not say so is its process's."""
        named = event.session or (f"process-{process.pid}-{process.born}" if process else "unknown")
        session = self._known.setdefault((event.agent, named), Session(event.agent, named))
        changed = process is not None and session.process != process
        if process is not None:
            session.process = process
        if event.folder and event.folder != session.folder:
            session.folder, changed = event.folder, True
        session.at = time.time()
        if self._turn(session, event) or changed:
            self.save(session)
        return session

    def of_process(self, process: Process) -> Session | None:
        """The session that a process was heard of in last."""
        found = [session for session in self._known.values() if session.process == process]
        return max(found, key=lambda session: session.at, default=None)

    def save(self, session: Session) -> None:
        """Writes one down; waits for nothing."""
        pid, born = session.process or (0, "")
        row = (
            session.agent,
            session.id,
            session.turn,
            session.turns,
            session.folder,
            json.dumps(session.roots),
            pid,
            born,
            int(session.at),
        )
        self._store.submit(lambda tx: tx.execute(_SAVE, row), ride=True)

    def _turn(self, session: Session, event: Event) -> bool:
        """Each prompt is a turn, by the agent's own name for it or else by its number."""
        if event.kind == "prompt":
            session.turns += 1
        elif not event.turn or event.turn == session.turn:
            return False
        session.turn = event.turn or str(session.turns)
        return True


def _session(row: sqlite3.Row) -> Session:
    process = Process(row["pid"], row["born"]) if row["pid"] else None
    roots = tuple(json.loads(row["roots"]))
    return Session(
        row["agent"], row["id"], row["turn"], row["turns"], row["folder"], roots, process, row["at"]
    )
