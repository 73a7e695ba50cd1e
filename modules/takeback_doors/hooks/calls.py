"""Calls: tools that agents have begun and not ended, each with what was captured before it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from takeback_doors.hooks.events import Event, Work
from takeback_doors.hooks.sessions import Session

if TYPE_CHECKING:
    import sqlite3

    from takeback.store import Store

TABLE = """
CREATE TABLE hook_call (
    id TEXT NOT NULL PRIMARY KEY,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    part TEXT NOT NULL,
    call TEXT NOT NULL,
    likeness TEXT NOT NULL,
    tool TEXT NOT NULL,
    work TEXT NOT NULL,
    handle TEXT NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
"""
_SAVE = "INSERT OR REPLACE INTO hook_call VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_REMEMBERED = 8192


def _set() -> anyio.Event:
    done = anyio.Event()
    done.set()
    return done


@dataclass(slots=True, eq=False)
class Call:
    """A call of a tool. `handle` is what files knows its edit or its window by; empty where nothing was
    captured, `why` then says why not. `ready` is set once that is known.
    """

    id: str
    agent: str
    session: str
    part: str
    call: str
    likeness: str
    tool: str
    work: Work
    at: int
    handle: str = ""
    why: str = ""
    ready: anyio.Event = field(default_factory=anyio.Event)


class Calls:
    """The open calls of all sessions, durable, and the numbers of those that ended not long ago."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: dict[tuple[str, str], list[Call]] = {}
        self._ended: dict[tuple[str, str, str], None] = {}

    async def load(self) -> None:
        """Recalls what earlier processes left open."""
        sql = "SELECT * FROM hook_call ORDER BY at"
        for row in await self._store.read(lambda db: db.execute(sql).fetchall()):
            self._open.setdefault((row["agent"], row["session"]), []).append(_call(row))

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    def __iter__(self) -> Iterator[Call]:
        return iter([call for calls in self._open.values() for call in calls])

    def of(self, session: Session) -> list[Call]:
        """The open calls of a session, oldest first."""
        return list(self._open.get(session.key, ()))

    def begin(self, session: Session, event: Event) -> Call | None:
        """Opens one; None for one that is open already, or that has ended before it began."""
        known = event.call and (
            (*session.key, event.call) in self._ended
            or any(call.call == event.call for call in self.of(session))
        )
        if known:
            return None
        call = Call(
            secrets.token_hex(12),
            *session.key,
            event.part,
            event.call,
            event.likeness,
            event.tool,
            event.work,
            time.time_ns(),
        )
        self._open.setdefault(session.key, []).append(call)
        return call

    def save(self, call: Call, *, ride: bool = False) -> None:
        """Writes one down, now that its handle is known; with `ride` in the commit of what is queued next."""
        row = (
            call.id,
            call.agent,
            call.session,
            call.part,
            call.call,
            call.likeness,
            call.tool,
            call.work,
            call.handle,
            call.at,
        )
        self._store.submit(lambda tx: tx.execute(_SAVE, row), ride=ride)

    def ending(self, session: Session, event: Event) -> Call | None:
        """The open call that an event is the end of: by its number, its likeness, or as the only one."""
        open_ = self.of(session)
        if event.call and (found := [call for call in open_ if call.call == event.call]):
            return found[0]
        # Only one of the two ends may have lost its number.
        rest = [call for call in open_ if not (call.call and event.call)]
        alike = [call for call in rest if call.likeness == event.likeness]
        if alike or (len(rest) == 1 and (not event.tool or not rest[0].tool or event.tool == rest[0].tool)):
            return (alike or rest)[0]
        return None

    def end(self, call: Call) -> bool:
        """Takes a call out; False when somebody else has."""
        calls = self._open.get((call.agent, call.session), [])
        if call not in calls:
            return False
        calls.remove(call)
        if not calls:
            del self._open[call.agent, call.session]
        self._remember(call.agent, call.session, call.call)
        self._store.submit(lambda tx: tx.execute("DELETE FROM hook_call WHERE id = ?", (call.id,)), ride=True)
        return True

    def has_ended(self, session: Session, event: Event) -> bool:
        """Whether an event repeats the end of a call that is known to be over."""
        return bool(event.call) and (*session.key, event.call) in self._ended

    def never_begun(self, session: Session, event: Event) -> None:
        """Remembers an end without a beginning: should that still come, it comes too late."""
        self._remember(*session.key, event.call)

    def _remember(self, agent: str, session: str, call: str) -> None:
        if call:
            self._ended[agent, session, call] = None
            if len(self._ended) > _REMEMBERED:
                del self._ended[next(iter(self._ended))]


def _call(row: sqlite3.Row) -> Call:
    return Call(**dict(row), ready=_set())
