"""Connections: each connected database with its worker, made when it is first asked for."""

from __future__ import annotations

from functools import partial

from takeback.context import Scope
from takeback_acts.rows import declared
from takeback_acts.rows.addresses import Address
from takeback_acts.rows.databases import Database, Databases
from takeback_acts.rows.journal import Ledger
from takeback_acts.rows.resources import Names
from takeback_acts.rows.scopes import Hidden
from takeback_acts.rows.sessions.session import Session
from takeback_acts.rows.settings import RowsSettings
from takeback_acts.rows.tables import Catalog
from takeback_acts.rows.workers import Worker


class Connection:
    """One database: its worker, and what the person declared of its tables."""

    def __init__(self, name: str, address: Address, settings: RowsSettings) -> None:
        self.name = name
        self.address = address
        self.worker: Worker[Session] = Worker(
            name,
            partial(open_session, name, address, settings),
            idle=settings.idle_seconds,
            wait=settings.wait_seconds,
        )
        self.rules = declared.rules(settings, name)
        self.names = Names(address.engine, name, self.rules.derived, self.rules.deltas)
        self._ledger: tuple[Catalog, Ledger] | None = None

    def ledger(self, session: Session) -> Ledger:
        """The journal of a session, for the schema as it is in its transaction. On the worker's thread."""
        made = self._ledger
        if made is None or made[0] is not session.catalog:
            made = self._ledger = (session.catalog, Ledger(session.dialect, session.catalog, self.rules))
        return made[1]


class Connections:
    """The connections of all databases."""

    def __init__(self, databases: Databases, settings: RowsSettings) -> None:
        self.databases = databases
        self.settings = settings
        self.hidden = Hidden(settings.hidden)
        self._open: dict[str, Connection] = {}

    def get(self, name: str | None, scope: Scope | None = None) -> Connection:
        """The connection of a database; raises what `Databases.named` raises."""
        return self.of(self.databases.named(name, scope))

    def of(self, database: Database) -> Connection:
        """The connection of a database."""
        found = self._open.get(database.name)
        if found is None or found.address != database.address:
            found = self._open[database.name] = Connection(database.name, database.address, self.settings)
        return found

    async def drop(self, name: str) -> None:
        """Close one."""
        found = self._open.pop(name, None)
        if found is not None:
            await found.worker.close()

    async def close(self) -> None:
        """Close all of them."""
        for name in list(self._open):
            await self.drop(name)


def open_session(name: str, address: Address, settings: RowsSettings) -> Session:
    """A session of a database, on the thread that is going to use it; the engine's driver is imported here.

    Raises `rows.unreachable`, `rows.password`, `rows.damaged`, `rows.busy` and others, in takeback's words.
    """
    outside, wait = declared.outside(settings, name), settings.wait_seconds
    if address.engine == "sqlite":
        from takeback_acts.rows.sessions import sqlite

        return sqlite.open_session(name, address.target, wait, outside)
    from takeback_acts.rows.sessions import postgresql

    return postgresql.open_session(name, address.target, wait, settings.statement_seconds, outside)
