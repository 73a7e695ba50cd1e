"""Participants: a database's open transaction, in which all steps of one plan are rehearsed or done."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import anyio

from takeback import faults
from takeback.context import Context
from takeback.errors import TakebackError
from takeback_acts.rows import barring, failures, told
from takeback_acts.rows.acting import roll_back
from takeback_acts.rows.connections import Connection
from takeback_acts.rows.sessions.session import Session
from takeback_core.undo import BegunAct, abandon, confirm

T = TypeVar("T")

# An undo has a deadline of its own, which cancels; of its many statements none is one that an agent wrote.
_SECONDS = 3600.0


class Participant:
    """One transaction across closures. Whoever opened it ends it, once, by `commit` or `rollback`."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._begun: list[tuple[Context, BegunAct]] = []
        self._entries: list[str] = []
        self._unsure = False
        self._holds = False
        self._doomed: BaseException | None = None
        self._session: Session | None = None

    async def open(self) -> None:
        """Take the turn and begin; raises `rows.busy` and what the database says."""
        await self.connection.worker.acquire()
        self._holds = True
        try:
            await self.connection.worker.run(self._begin, seconds=_SECONDS)
        except BaseException:
            await self.rollback()
            raise

    async def run(self, fn: Callable[[Session], T]) -> T:
        """Run a closure within the transaction; what it raises leaves the transaction as it was before."""
        return await self._run(partial(_apart, fn))

    def counts(self, ctx: Context, opened: BegunAct, entry: str) -> None:
        """Note a row of the log that stands, or falls, with the transaction, and its entry in the journal."""
        self._begun.append((ctx, opened))
        self._entries.append(entry)

    def doom(self, error: BaseException) -> None:
        """Note that a step changed rows of which the log could not be told: nothing of it may stand."""
        self._doomed = error

    async def prepare(self) -> None:
        """Say no where not all that was changed could be taken back again."""
        if self._doomed is not None:
            raise told.unrecorded(self.connection.name) from self._doomed

    async def commit(self) -> None:
        """Commit, then confirm what was begun; where it raises, nothing of it stands."""
        faults.point("rows.deciding")
        try:
            await self._run(lambda session: session.dialect.commit(session.link))
        except TakebackError as error:
            if error.code != "rows.unsure" or not await self._stands():
                raise
        faults.point("rows.decided")
        begun, self._begun = self._begun, []
        self._let_go()
        for ctx, opened in begun:
            try:
                await confirm(ctx, opened)
            except TakebackError:
                # It stands by now, whatever the log says; the journal, which is asked then, knows.
                await abandon(ctx, opened)

    async def rollback(self) -> None:
        """Roll back, and abandon what was begun."""
        if not self._holds:
            return
        with anyio.CancelScope(shield=True):
            try:
                await self._run(roll_back)
            except TakebackError:
                pass  # a worker that has ended has rolled back
            finally:
                self._let_go()
            for ctx, opened in reversed(self._begun):
                if not self._unsure:
                    opened.nothing_is_left()
                await abandon(ctx, opened)
            self._begun.clear()

    async def _stands(self) -> bool:
        """Whether a transaction whose commit was cut off has happened: the journal tells, once it answers."""
        self._unsure = True

        def look(session: Session) -> bool:
            with failures.reported(self.connection.name, session.dialect):
                return bool(barring.settled(self.connection, session, self._entries))

        found = await self.connection.worker.run(look, seconds=_SECONDS)
        self._unsure = False
        return found

    async def _run(self, fn: Callable[[Session], T]) -> T:
        return await self.connection.worker.run(partial(self._within, fn), seconds=_SECONDS)

    def _begin(self, session: Session) -> None:
        with failures.reported(self.connection.name, session.dialect):
            session.begin()
        self._session = session

    def _within(self, fn: Callable[[Session], T], session: Session) -> T:
        if session is not self._session or not session.in_transaction:
            # The connection broke, or a trigger rolled back: nothing may be written but in the transaction.
            raise told.lost(self.connection.name)
        with failures.reported(self.connection.name, session.dialect):
            return fn(session)

    def _let_go(self) -> None:
        if self._holds:
            self._holds = False
            self.connection.worker.release()


def _apart(fn: Callable[[Session], Any], session: Session) -> Any:
    """A closure whose failure takes back its own writes alone."""
    session.dialect.savepoint(session.link, "takeback_step")
    try:
        result = fn(session)
    except BaseException:
        with suppress(Exception):  # boundary: what went wrong before is what must be heard
            session.dialect.rollback_to(session.link, "takeback_step")
        raise
    session.dialect.release(session.link, "takeback_step")
    return result
