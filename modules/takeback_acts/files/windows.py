"""Windows: the time in which a command ran, durable from its beginning, and what else was done meanwhile."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from takeback_acts.files.paths import beneath, join, parse, resource
from takeback_acts.files.states import ABSENT, told
from takeback_acts.files.steps import Item

if TYPE_CHECKING:
    import sqlite3

    from takeback.store import Store, Transaction

TABLES = """
CREATE TABLE files_window (
    id TEXT NOT NULL PRIMARY KEY,
    at INTEGER NOT NULL,
    ended INTEGER,
    about TEXT NOT NULL,
    answer TEXT
) WITHOUT ROWID;
CREATE TABLE files_window_act (
    window TEXT NOT NULL REFERENCES files_window (id) ON DELETE CASCADE,
    act TEXT NOT NULL,
    resource TEXT NOT NULL,
    before TEXT NOT NULL,
    after TEXT NOT NULL
);
CREATE INDEX files_window_act_window ON files_window_act (window);
"""
# As long as somebody may still ask for the answer of a window that a crash ended.
_KEPT_NS = 7 * 86_400 * 10**9
_CLOSE = "UPDATE files_window SET ended = ?, answer = ? WHERE id = ?"
_INSERT = "INSERT INTO files_window VALUES (?, ?, NULL, ?, NULL)"
_NOTE = "INSERT INTO files_window_act VALUES (?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Window:
    """One command's time: who ran what, in which roots.

    `at` is in nanoseconds since 1970, `birth` the same moment by the clock of births. `process` is the one
    that will say when the command has ended, and `born` tells it from a later one of the same number; 0
    where nobody can tell whether it lives.
    """

    id: str
    at: int
    origin: str
    session: str | None
    turn: str | None
    roots: tuple[bytes, ...]
    cwd: str
    command: tuple[str, ...]
    process: int = 0
    born: str = ""
    birth: int = 0

    def covers(self, path: bytes) -> bool:
        """Whether a path lies in one of its roots."""
        return any(beneath(path, root) for root in self.roots)

    def is_lost(self, now: int, longest_ns: int) -> bool:
        """Whether nobody will ever say that it has ended."""
        if self.process:
            return born(self.process) != self.born
        return now - self.at > longest_ns


def born(process: int) -> str:
    """When a process began, as far as the system tells; empty for one that is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
        return "" if fields[0] == b"Z" else fields[19].decode()
    except (FileNotFoundError, ProcessLookupError):
        return "" if Path("/proc/self/stat").exists() else _is_there(process)


class Windows:
    """The windows that are open, and those that were."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.open: dict[str, Window] = {}
        # Of windows that are not stored yet; filled and emptied on the store's writing thread.
        self._early: dict[str, list[tuple[str, str, str, str, str]]] = {}

    async def load(self) -> None:
        """Those that were open when the process before this one ended."""
        rows = await self._store.read(lambda db: db.execute(_OPEN).fetchall())
        self.open = {row["id"]: _window(row) for row in rows}

    def expect(self, window: Window) -> None:
        """Notes from now on what takeback's own tools do in a window that is about to begin."""
        self._early[window.id] = []
        self.open[window.id] = window

    async def begin(self, window: Window) -> None:
        """Opens an expected one; durable when this returns."""
        row = (window.id, window.at, _about(window))

        def insert(tx: Transaction) -> None:
            tx.execute(_INSERT, row)
            tx.executemany(_NOTE, self._early.pop(window.id))

        await self._store.transaction(insert)

    def drop(self, window: Window) -> None:
        """Forgets an expected one that did not begin."""
        self.open.pop(window.id, None)
        self._early.pop(window.id, None)

    def ending(self, window: Window) -> None:
        """Closes one in the commit of what is queued next: its act, whose id is then told to `end`."""
        answer = json.dumps({"notes": ["what it changed is in the log"]})
        row = (time.time_ns(), answer, window.id)
        self._store.submit(lambda tx: tx.execute(_CLOSE, row), ride=True)

    async def reopen(self, window: Window) -> None:
        """Opens one again whose act could not be recorded."""
        sql = "UPDATE files_window SET ended = NULL, answer = NULL WHERE id = ?"
        await self._store.transaction(lambda tx: tx.execute(sql, (window.id,)))

    async def end(self, window: Window, answer: dict[str, Any]) -> None:
        """Closes one, keeps its answer for a while, and forgets old ones that no open one overlaps."""
        now = time.time_ns()

        def close(tx: Transaction) -> None:
            tx.execute(_CLOSE, (now, json.dumps(answer), window.id))
            tx.execute(
                "DELETE FROM files_window WHERE ended < ? AND"
                " ended < (SELECT coalesce(min(at), ?) FROM files_window WHERE ended IS NULL)",
                (now - _KEPT_NS, now),
            )

        await self._store.transaction(close)
        self.open.pop(window.id, None)

    async def ended(self, id: str) -> tuple[Window, dict[str, Any]] | None:
        """A window that was ended, with its answer; None when there is none of that id."""
        sql = "SELECT * FROM files_window WHERE id = ? AND ended IS NOT NULL"
        row = await self._store.read(lambda db: db.execute(sql, (id,)).fetchone())
        return (_window(row), json.loads(row["answer"])) if row is not None else None

    async def overlapping(self, window: Window) -> list[Window]:
        """Other windows that were open while this one was."""
        sql = "SELECT * FROM files_window WHERE id <> ? AND (ended IS NULL OR ended > ?)"
        rows = await self._store.read(lambda db: db.execute(sql, (window.id, window.at)).fetchall())
        return [_window(row) for row in rows]

    def note(self, tx: Transaction, act: str, items: Sequence[Item]) -> None:
        """Notes for each open window what an act of takeback's own tools is about to do in its roots."""
        for window in list(self.open.values()):
            rows = [
                (window.id, act, resource(path), before, after)
                for path, before, after in _each(items)
                if window.covers(path)
            ]
            early = self._early.get(window.id)
            if early is not None:
                early += rows
            else:
                tx.executemany(_NOTE, rows)

    def unnote(self, tx: Transaction, act: str) -> None:
        """Forgets what was noted of an act that did not happen."""
        if self.open:
            tx.execute("DELETE FROM files_window_act WHERE act = ?", (act,))
        for early in list(self._early.values()):
            early[:] = [row for row in early if row[1] != act]

    async def noted(self, window: Window) -> dict[bytes, list[tuple[str, str]]]:
        """What takeback's own tools did in a window: the versions before and after by path, oldest first."""
        sql = "SELECT resource, before, after FROM files_window_act WHERE window = ? ORDER BY rowid"
        found: dict[bytes, list[tuple[str, str]]] = {}
        for row in await self._store.read(lambda db: db.execute(sql, (window.id,)).fetchall()):
            found.setdefault(parse(row["resource"])[0], []).append((row["before"], row["after"]))
        return found


_OPEN = "SELECT * FROM files_window WHERE ended IS NULL"


def _each(items: Iterable[Item]) -> Iterable[tuple[bytes, str, str]]:
    """Every path of an act's items, those in folders too, with its versions before and after."""
    for item in items:
        path = item.spot.path
        yield path, *told(item.now.state, item.want.state)
        before = {entry.path: entry.state for entry in item.now.entries}
        after = {entry.path: entry.state for entry in item.want.entries}
        for inner in before | after:
            yield join(path, inner), *told(before.get(inner, ABSENT), after.get(inner, ABSENT))


def _about(window: Window) -> str:
    return json.dumps(
        {
            "origin": window.origin,
            "session": window.session,
            "turn": window.turn,
            "roots": [resource(root) for root in window.roots],
            "cwd": window.cwd,
            "command": window.command,
            "process": window.process,
            "born": window.born,
            "birth": window.birth,
        }
    )


def _window(row: sqlite3.Row) -> Window:
    about = json.loads(row["about"])
    about["roots"] = tuple(parse(root)[0] for root in about["roots"])
    about["command"] = tuple(about["command"])
    return Window(id=row["id"], at=row["at"], **about)


def _is_there(process: int) -> str:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "there"
