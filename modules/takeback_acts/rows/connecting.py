"""Connecting: a database of the person's is looked at, given a journal, and let go again."""

from __future__ import annotations

import time
from functools import partial

from anyio import to_thread

from takeback import moments
from takeback.callers import is_name
from takeback.context import Context
from takeback.errors import ConflictError, RefusedError, TakebackError, UsageError
from takeback.module import Host
from takeback_acts.rows import addresses, failures, models
from takeback_acts.rows.acting import roll_back
from takeback_acts.rows.connections import Connection, Connections
from takeback_acts.rows.databases import Database
from takeback_acts.rows.sessions.session import Session
from takeback_acts.rows.tables import Catalog

# What says that a database can't be asked to give back what is takeback's.
_AWAY = ("rows.unreachable", "rows.password", "rows.file", "rows.damaged", "rows.readonly", "rows.deadline")


class Connector:
    """Connects and disconnects; what is the person's own in a database stays as it is."""

    def __init__(self, host: Host, connections: Connections) -> None:
        self._host = host
        self._connections = connections
        self._seconds = connections.settings.statement_seconds

    async def connect(self, args: models.Connect) -> models.Connected:
        """Looks, installs, and remembers. Twice is once, with the URL of the second time.

        Raises UsageError `rows.name`, `rows.url`, RefusedError `rows.file`, `rows.own_database`,
        `rows.no_tables`, `rows.superuser`, `rows.password`, ConflictError `rows.connected`, and what the
        database says.
        """
        if not is_name(args.name):
            raise UsageError(
                "rows.name",
                f"{args.name!r:.80} can't be a database's name",
                "Use 1 to 63 of a-z, 0-9, _ and -, beginning with a letter or a digit.",
            )
        address = await to_thread.run_sync(addresses.read, args.url, self._host.home)
        self._connections.databases.require_free(args.name, address)
        trial = Connection(args.name, address, self._connections.settings)
        try:
            async with trial.worker.turn():
                catalog = await trial.worker.run(partial(_install, args.name), seconds=self._seconds)
        finally:
            await trial.worker.close()
        database = Database(args.name, address, time.time())
        await self._connections.databases.put(database)
        await self._connections.drop(args.name)
        return models.Connected(database=_shown(database, catalog), notes=_notes(catalog))

    async def disconnect(self, ctx: Context, args: models.Disconnect) -> models.Disconnected:
        """Takes takeback's own away and forgets.

        Raises ConflictError `rows.in_use`, NotFoundError `rows.database`.
        """
        database = self._connections.databases.named(args.name)
        if not args.force:
            await self._require_unused(args.name)
        warning = ""
        connection = self._connections.of(database)
        try:
            async with connection.worker.turn():
                await connection.worker.run(partial(_remove, args.name), seconds=self._seconds)
        except TakebackError as error:
            if error.code not in _AWAY:
                raise
            warning = f"takeback's table could not be removed from it: {error.message}"
        await self._connections.databases.drop(args.name)
        await self._connections.drop(args.name)
        return models.Disconnected(name=args.name, warning=warning)

    def list(self) -> models.Databases:
        """Every connected database, without asking any of them."""
        return models.Databases(databases=[_shown(one, None) for one in self._connections.databases.all()])

    async def _require_unused(self, name: str) -> None:
        cursor = None
        while True:
            page = await self._host.ctx.call(
                "undo.recorded", resource=f"rows:{name}/", limit=500, cursor=cursor
            )
            count = sum(act.undoable and act.role == "act" for act in page.acts)
            if count:
                raise ConflictError(
                    "rows.in_use",
                    f"{count}{'+' if page.next else ''} acts on database {name} can still be taken back",
                    "With --force they never can again, since their journal goes.",
                )
            if page.next is None:
                return
            cursor = page.next


def _install(name: str, session: Session) -> Catalog:
    with failures.reported(name, session.dialect):
        session.require_fit()
        session.begin()
        try:
            catalog = session.catalog
            if not catalog.tables:
                raise _no_tables(name, catalog)
            session.dialect.install(session.link, catalog)
            session.dialect.commit(session.link)
        except BaseException:
            roll_back(session)
            raise
    return catalog


def _remove(name: str, session: Session) -> None:
    with failures.reported(name, session.dialect):
        session.begin()
        try:
            session.dialect.remove(session.link)
            session.dialect.commit(session.link)
        except BaseException:
            roll_back(session)
            raise


def _no_tables(name: str, catalog: Catalog) -> RefusedError:
    reasons = "; ".join(f"{table} ({why})" for table, why in sorted(catalog.refused.items()))
    return RefusedError(
        "rows.no_tables",
        f"Database {name} has no table whose changes could be taken back: {reasons or 'it has none at all'}"[
            :1000
        ],
        "Give its tables a primary key, then connect it.",
        data={"refused": dict(catalog.refused)},
    )


def _shown(database: Database, catalog: Catalog | None) -> models.Database:
    return models.Database(
        name=database.name,
        engine=database.address.engine,
        url=database.address.shown,
        connected=moments.stamp(database.at),
        tables=None if catalog is None else sorted(catalog.tables),
        refused=None if catalog is None else dict(sorted(catalog.refused.items())),
    )


def _notes(catalog: Catalog) -> list[str]:
    return [f"{table} can't be changed: {why}" for table, why in sorted(catalog.refused.items())]
