"""Databases: which of the person's are connected, as takeback's own store has it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from takeback.context import Scope
from takeback.errors import ConflictError, NotFoundError, UsageError
from takeback_acts.rows import scopes
from takeback_acts.rows.addresses import Address

if TYPE_CHECKING:
    from takeback.store import Store, Transaction

# `target` may hold a password; takeback's own store is readable by the person alone.
TABLE = """
CREATE TABLE rows_database (
    name TEXT NOT NULL PRIMARY KEY,
    engine TEXT NOT NULL,
    target TEXT NOT NULL,
    shown TEXT NOT NULL,
    at REAL NOT NULL
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Database:
    """A connected database; `at` is when it was connected, in seconds since the epoch."""

    name: str
    address: Address
    at: float = field(default_factory=time.time)


class Databases:
    """Every connected database, kept in memory; takeback's store is written by `put` and `drop` alone."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, Database] = {}

    async def load(self) -> None:
        """Recall what earlier processes connected."""
        sql = "SELECT name, engine, target, shown, at FROM rows_database ORDER BY name"
        for row in await self._store.read(lambda db: db.execute(sql).fetchall()):
            name, engine, target, shown, at = tuple(row)
            self._known[name] = Database(name, Address(engine, target, shown), at)

    def all(self) -> list[Database]:
        """Each one, by name."""
        return sorted(self._known.values(), key=lambda one: one.name)

    def named(self, name: str | None, scope: Scope | None = None) -> Database:
        """The one of that name, or the only one when none is named; of what a scope lets be seen.

        Raises NotFoundError `rows.database`, UsageError `rows.which_database`.
        """
        if name is None:
            return _only([one for one in self.all() if scopes.sees(scope, one.name)])
        found = self._known.get(name)
        if found is None or not scopes.sees(scope, name):
            raise NotFoundError(
                "rows.database",
                f"No database {name!r:.80} is connected",
                "`takeback rows list` shows them all.",
            )
        return found

    def require_free(self, name: str, address: Address) -> None:
        """Raises ConflictError `rows.connected` when the name, or the database, is taken by another."""
        for one in self._known.values():
            if one.address == address and one.name != name:
                raise _taken(f"That database is connected as {one.name}")
            if one.name == name and one.address != address:
                raise _taken(f"Another database is connected as {name}")

    async def put(self, database: Database) -> None:
        """Remember one."""

        def keep(tx: Transaction) -> None:
            address = database.address
            values = (database.name, address.engine, address.target, address.shown, database.at)
            tx.execute("INSERT OR REPLACE INTO rows_database VALUES (?, ?, ?, ?, ?)", values)

        await self._store.transaction(keep)
        self._known[database.name] = database

    async def drop(self, name: str) -> None:
        """Forget one."""
        await self._store.transaction(
            lambda tx: tx.execute("DELETE FROM rows_database WHERE name = ?", (name,))
        )
        self._known.pop(name, None)


def _only(found: list[Database]) -> Database:
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotFoundError(
            "rows.database",
            "No database is connected",
            "The person connects one with `takeback rows connect NAME URL`, and grants an agent its tables.",
        )
    raise UsageError(
        "rows.which_database",
        f"{len(found)} databases are connected: {', '.join(one.name for one in found)}"[:500],
        "Say which: `database` takes its name.",
    )


def _taken(why: str) -> ConflictError:
    return ConflictError(
        "rows.connected", why, "`takeback rows list` shows what is connected; disconnect that first."
    )
