"""The rows module: agents' and the person's own acts on databases, each with what takes it back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from anyio.abc import TaskGroup

from takeback import Check, Context, Host, Module, tool
from takeback_acts.rows import databases, models
from takeback_acts.rows.settings import RowsSettings

if TYPE_CHECKING:
    from takeback_acts.rows.floor import Floor

_ANYBODY = ("person", "agents", "modules")
_PERSON = ("person",)


class RowsModule(Module):
    """Rows of the databases that the person connected, by the tables that they granted.

    A write, all that it causes and what reverses it are one transaction of that database. Drivers and readers
    of SQL are loaded when a database is first used: who connects none does not pay for them.
    """

    Settings = RowsSettings
    migrations = (databases.TABLE,)

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._databases = databases.Databases(host.store)
        self._made: Floor | None = None

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        """Recall what is connected; nothing is opened before somebody asks for it."""
        await self._databases.load()
        expired = self.host.events.on("undo.expired", lambda seq, event: self._expire())
        try:
            yield
        finally:
            expired()
            if self._made is not None:
                await self._made.connections.close()

    async def _expire(self) -> None:
        if self._databases.all():
            await self._floor.expirer.expire()

    @property
    def _floor(self) -> Floor:
        if self._made is None:
            from takeback_acts.rows.floor import Floor

            self._made = Floor(self.host, self._databases)
        return self._made

    @tool(effect="read", reach=_ANYBODY)
    async def tables(self, ctx: Context, args: models.Where) -> models.Tables:
        """List the tables that you may touch, with their columns and keys."""
        return await self._floor.reader.tables(ctx, args)

    @tool(effect="read", reach=_ANYBODY)
    async def query(self, ctx: Context, args: models.Query) -> models.Rows:
        """Read rows of one table: `where` by column, an order, a limit and an offset."""
        return await self._floor.reader.query(ctx, args)

    @tool(effect="write", reach=_ANYBODY)
    async def insert(self, ctx: Context, args: models.Insert) -> models.Done:
        """Add one row; columns that are left out get their defaults."""
        return await self._floor.changer.insert(ctx, args)

    @tool(effect="write", reach=_ANYBODY, destructive=True, idempotent=True)
    async def update(self, ctx: Context, args: models.Update) -> models.Done:
        """Set columns of the row with a key."""
        return await self._floor.changer.update(ctx, args)

    @tool(effect="write", reach=_ANYBODY, destructive=True)
    async def delete(self, ctx: Context, args: models.Delete) -> models.Done:
        """Delete the row with a key, and what the database deletes along with it."""
        return await self._floor.changer.delete(ctx, args)

    @tool(effect="write", reach=_ANYBODY, destructive=True)
    async def execute(self, ctx: Context, args: models.Execute) -> models.Done:
        """Run one INSERT, UPDATE, DELETE or MERGE with its parameters."""
        return await self._floor.changer.execute(ctx, args)

    @tool(effect="write", reach=_PERSON, person_only=True, idempotent=True)
    async def connect(self, ctx: Context, args: models.Connect) -> models.Connected:
        """Connect a database under a name, and make takeback's journal in it."""
        return await self._floor.connector.connect(args)

    @tool(effect="write", reach=_PERSON, person_only=True, destructive=True)
    async def disconnect(self, ctx: Context, args: models.Disconnect) -> models.Disconnected:
        """Let a database go, and take takeback's journal out of it; nothing else in it is changed."""
        return await self._floor.connector.disconnect(ctx, args)

    @tool(effect="read", reach=_PERSON)
    async def databases(self, ctx: Context, args: models.Nothing) -> models.Databases:
        """List the connected databases."""
        return self._floor.connector.list()

    @tool(effect="write", reach=("modules",), previews=True, destructive=True)
    async def restore(self, ctx: Context, args: models.Restore) -> models.Restored:
        """Take an entry of a database's journal back; the inverse of every act on rows."""
        return await self._floor.restorer.restore(ctx, args)

    @tool(effect="read", reach=("modules",))
    async def versions(self, ctx: Context, args: models.Resources) -> models.Versions:
        """Tell the version that each resource has now, or has within a plan."""
        return await self._floor.restorer.versions(ctx, args)

    @tool(effect="read", reach=("modules",))
    async def happened(self, ctx: Context, args: models.Happened) -> models.Answers:
        """Tell from the journals whether begun acts have happened, and what they did."""
        return await self._floor.restorer.happened(args)

    async def checks(self) -> list[Check]:
        """Whether each connected database answers, and has its journal."""
        return await self._floor.doctor.checks() if self._databases.all() else []
