"""Checking: what `takeback doctor` should know of each connected database."""

from __future__ import annotations

from functools import partial

from takeback.errors import TakebackError
from takeback.module import Check
from takeback_acts.rows import failures
from takeback_acts.rows.connections import Connection, Connections
from takeback_acts.rows.sessions.session import Session

_SECONDS = 5.0


class Doctor:
    """Looks at the databases one after the other."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def checks(self) -> list[Check]:
        """A line for each database."""
        return [await self._check(self._connections.of(one)) for one in self._connections.databases.all()]

    async def _check(self, connection: Connection) -> Check:
        name = f"database {connection.name}"
        try:
            missing, refused = await connection.worker.run(partial(_look, connection.name), seconds=_SECONDS)
        except TakebackError as error:
            return Check(name, False, error.message, error.hint)
        if missing:
            detail = f"{missing}; acts on it are refused"
            return Check(
                name, False, detail, f"`takeback rows connect {connection.name} URL` makes it again."
            )
        told = f"{refused} tables can't be changed" if refused else "all of its tables can be changed"
        return Check(name, True, f"{connection.address.shown}: {told}")


def _look(name: str, session: Session) -> tuple[str, int]:
    with failures.reported(name, session.dialect):
        catalog = session.refresh()
        return session.missing(), len(catalog.refused)
