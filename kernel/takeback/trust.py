"""What the person has said of modules: which added ones they trust, which are switched on or off."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from takeback.store import Store, Transaction

MIGRATIONS = (
    """
    CREATE TABLE kernel_module (
        name TEXT NOT NULL PRIMARY KEY,
        distribution TEXT NOT NULL DEFAULT '',
        trusted INTEGER NOT NULL DEFAULT 0,
        enabled INTEGER
    ) STRICT, WITHOUT ROWID;
    """,
)


@dataclass(frozen=True, slots=True)
class Said:
    """The person's word on one module; `enabled` is None where the settings decide."""

    distribution: str
    trusted: bool
    enabled: bool | None


class Trust:
    """Keeps the person's word in the store.

    It is given of a name of one distribution: another package that takes the name over starts anew.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._said: dict[str, Said] = {}

    async def load(self) -> None:
        """Read what was said."""
        self._said = await self._store.read(_load)

    def trusts(self, name: str, distribution: str) -> bool:
        """Whether the person trusts this module of this distribution."""
        said = self._said.get(name)
        return said is not None and said.trusted and said.distribution == distribution

    def enabled(self, name: str, distribution: str) -> bool | None:
        """Whether the person switched this module on or off; None where they did neither."""
        said = self._said.get(name)
        return said.enabled if said is not None and said.distribution == distribution else None

    async def say(
        self, name: str, distribution: str, *, trusted: bool | None = None, enabled: bool | None = None
    ) -> None:
        """Remember the person's word; what is not given stays as it was."""
        before = self._said.get(name)
        if before is None or before.distribution != distribution:
            before = Said(distribution, False, None)
        after = Said(
            distribution,
            before.trusted if trusted is None else trusted,
            before.enabled if enabled is None else enabled,
        )
        await self._store.transaction(lambda tx: _save(tx, name, after))
        self._said[name] = after


def _load(db: sqlite3.Connection) -> dict[str, Said]:
    found = db.execute("SELECT name, distribution, trusted, enabled FROM kernel_module").fetchall()
    return {
        name: Said(distribution, bool(trusted), None if enabled is None else bool(enabled))
        for name, distribution, trusted, enabled in map(tuple, found)
    }


def _save(tx: Transaction, name: str, said: Said) -> None:
    tx.execute(
        "INSERT OR REPLACE INTO kernel_module (name, distribution, trusted, enabled) VALUES (?, ?, ?, ?)",
        (name, said.distribution, int(said.trusted), None if said.enabled is None else int(said.enabled)),
    )
