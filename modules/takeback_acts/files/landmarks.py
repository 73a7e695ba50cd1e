"""Landmarks: the folders that led to what acts touched, remembered to tell a disk that is away."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from takeback_acts.files import ancestry
from takeback_acts.files.paths import content, parse, resource

if TYPE_CHECKING:
    import sqlite3

    from takeback.store import Store, Transaction

TABLE = """
CREATE TABLE files_landmark (
    folder TEXT NOT NULL PRIMARY KEY,
    identity TEXT NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
"""
_DAY = 86_400
_KEPT = 400 * _DAY
_KEEP = "INSERT OR REPLACE INTO files_landmark VALUES (?, ?, ?)"
_FORGET = "DELETE FROM files_landmark WHERE folder = ? OR folder > ? AND folder < ?"


class Landmarks:
    """Each folder above a path that was acted on, by its device and inode at the last act there."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, str] = {}
        self._at: dict[str, int] = {}

    async def load(self) -> None:
        """Recalls what earlier processes noted, but for what no act has come by for more than a year."""
        oldest = int(time.time()) - _KEPT
        await self._store.transaction(
            lambda tx: tx.execute("DELETE FROM files_landmark WHERE at < ?", (oldest,))
        )
        for row in await self._store.read(_rows):
            self._known[row["folder"]], self._at[row["folder"]] = row["identity"], row["at"]

    def note(self, above: Mapping[str, str], anew: Sequence[bytes]) -> Callable[[Transaction], None]:
        """What writes down, in a transaction of an act, what leads to its paths.

        `anew` are the folders among these that it makes, removes or puts back: others from then on.
        """
        now = int(time.time())
        news = [
            (folder, identity, now)
            for folder, identity in above.items()
            if self._known.get(folder) != identity or self._at.get(folder, 0) < now - _DAY
        ]

        def write(tx: Transaction) -> None:
            if anew:
                tx.executemany(_FORGET, [_span(path) for path in anew])
            if news:
                tx.executemany(_KEEP, news)
            self._remember(news, anew)

        return write

    def require_there(self, path: bytes) -> None:
        """Raises TakebackError `files.unreachable` when the disk of a path is away. Blocks."""
        ancestry.require_there(path, self._known)

    def _remember(self, news: Sequence[tuple[str, str, int]], anew: Sequence[bytes]) -> None:
        if anew:
            gone = set(anew)
            self._known = {
                folder: identity
                for folder, identity in self._known.items()
                if gone.isdisjoint(ancestry.lineage(parse(folder)[0]))
            }
        for folder, identity, at in news:
            self._known[folder], self._at[folder] = identity, at


def _span(path: bytes) -> tuple[str, str, str]:
    """The folder itself, and between which two texts the ones in it are."""
    inner = content(path)
    return resource(path), inner, inner[:-1] + "0"


def _rows(db: sqlite3.Connection) -> list[sqlite3.Row]:
    return db.execute("SELECT folder, identity, at FROM files_landmark").fetchall()
