"""Expiring: entries of the journals go when the log has forgotten their acts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

from takeback import faults, moments
from takeback.errors import TakebackError
from takeback.module import Host
from takeback_acts.rows import failures
from takeback_acts.rows.acting import roll_back
from takeback_acts.rows.connections import Connection, Connections
from takeback_acts.rows.sessions.session import Session

# An entry has its time from just before its row in the log, by the same clock; this is for whatever else.
_MARGIN = timedelta(days=1)
_HIGHEST = (1 << 59) - 1


class Expirer:
    """Looks how far back the log reaches on each database, and lets its journal reach no further."""

    def __init__(self, host: Host, connections: Connections) -> None:
        self._host = host
        self._connections = connections

    async def expire(self) -> None:
        """Do it for every database; one that can't be reached now has its turn the next time."""
        for database in self._connections.databases.all():
            connection = self._connections.of(database)
            try:
                before = moments.stamp(await self._reach(database.name) - _MARGIN)
                async with connection.worker.turn():
                    forget = partial(_forget, connection, before)
                    await connection.worker.run(forget, seconds=self._connections.settings.statement_seconds)
                faults.point("rows.expired")
            except TakebackError as error:
                self._host.log.warning("Old entries stay in database %s: %s", database.name, error.code)

    async def _reach(self, database: str) -> datetime:
        """When the oldest act on a database that the log has was begun; now, when it has none."""
        low, high = 0, _HIGHEST
        oldest = await self._newest_before(database, high)
        if oldest is None:
            return datetime.now(UTC)
        while high - low > 1:
            middle = (low + high) // 2
            found = await self._newest_before(database, middle)
            if found is None:
                low = middle
            else:
                high, oldest = middle, found
        return oldest

    async def _newest_before(self, database: str, seq: int) -> datetime | None:
        asked = {"resource": f"rows:{database}/", "limit": 1, "cursor": str(seq)}
        acts = (await self._host.ctx.call("undo.recorded", asked)).acts
        return moments.parse(acts[0].at) if acts else None


def _forget(connection: Connection, before: str, session: Session) -> None:
    with failures.reported(connection.name, session.dialect):
        session.begin()
        try:
            connection.ledger(session).expire(session.link, before)
            session.dialect.commit(session.link)
        except BaseException:
            roll_back(session)
            raise
