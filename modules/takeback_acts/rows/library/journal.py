"""The journal of an app with an async session or connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_scoped_session

from takeback.errors import UsageError
from takeback_acts.rows.library import opening
from takeback_acts.rows.library.acts import Act
from takeback_acts.rows.library.carried import carried
from takeback_acts.rows.library.core import Core
from takeback_acts.rows.library.plans import Plan, Rewound
from takeback_acts.rows.library.points import Name
from takeback_acts.rows.library.rewinding import Wish

Reachable = AsyncSession | AsyncConnection | async_scoped_session[Any]


class Journal:
    """What an app's agent writes to the app's own database, kept in that database so that it can be taken
    back.

    Everything happens in the session that is given, in the transaction that it is in: the app commits or
    rolls back, and journal and rows go together. `groups`: by table, sets of columns that mean something only
    together, and conflict together. `deltas`: numbers of which only the difference is given back. `derived`:
    columns that the app or the database works out, such as updated_at: never compared and never promised.
    `ignore`: tables that are not journaled. `names`: by table, one and several of it for the words of a plan.
    Raises UsageError `journal.rules`.
    """

    def __init__(
        self,
        *,
        groups: Mapping[str, Collection[Collection[str]]] | None = None,
        deltas: Mapping[str, Collection[str]] | None = None,
        derived: Mapping[str, Collection[str]] | None = None,
        ignore: Iterable[str] = (),
        names: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        self._core = Core(groups, deltas, derived, ignore, names)

    async def install(self, target: AsyncEngine | AsyncConnection) -> None:
        """Makes the table `takeback_journal`, and on PostgreSQL triggers; does nothing a second time.

        A connection's transaction is the app's to commit. A table that is made later is seen by itself.
        """
        if isinstance(target, AsyncEngine):
            async with target.begin() as connection:
                await connection.run_sync(self._core.install)
        else:
            await _connection(target).run_sync(self._core.install)

    async def remove(self, target: AsyncEngine | AsyncConnection) -> None:
        """Takes away all that `install` made, the journal too."""
        if isinstance(target, AsyncEngine):
            async with target.begin() as connection:
                await connection.run_sync(self._core.remove)
        else:
            await _connection(target).run_sync(self._core.remove)

    @asynccontextmanager
    async def act(
        self,
        session: Reachable,
        *,
        group: Name,
        point: Name,
        tool: str = "",
        note: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[Act]:
        """An act: whatever the session changes until the end is journaled in its transaction.

        `group` is the conversation, `point` the message, `note` the app's own (JSON values). What was pending
        before is flushed first, and is not the act's. When the body raises, nothing that it did stands, also
        if the app goes on and commits. When it changes nothing there is no entry. UsageError `journal.name`,
        `journal.note`, `journal.ended` (committed or rolled back within it), `journal.order`,
        `journal.binds`; RefusedError `journal.driver`, `journal.autocommit`, and `rows.unjournaled`,
        `rows.key`, `rows.value`, `rows.truncate` for what can't be kept; NotFoundError `journal.missing`;
        ConflictError `journal.busy`.
        """
        target = _target(session)
        act = self._core.act(group, point, tool, note)
        try:
            await carried(target, lambda sync: self._core.open(sync, act), shielded=True)
        except asyncio.CancelledError:
            if act.alive:
                await carried(target, lambda sync: opening.drop_act(act), shielded=True)
            raise
        try:
            yield act
        except BaseException as error:
            reason = opening.told(error, act)
            await carried(target, lambda sync: opening.drop_act(act), shielded=True)
            if reason is error:
                raise
            raise reason from error
        await carried(target, lambda sync: opening.close_act(act))

    async def preview(
        self,
        session: Reachable,
        *,
        group: Name,
        point: Name,
        points: Sequence[Name] | None = None,
        skip_conflicts: bool = False,
        force: bool = False,
    ) -> Plan:
        """What `rewind` with the same arguments would do; nothing is changed.

        The point and all after it are taken back, newest act first. After a number come all greater ones;
        after any other point those that acted first after it, or else `points` says which. Raises UsageError
        `journal.name`, `journal.points`; NotFoundError `journal.missing`; RefusedError `journal.within`.
        """
        wish = Wish(group, point, points, skip=skip_conflicts, force=force)
        return await carried(_target(session), lambda sync: self._core.preview(sync, wish))

    async def rewind(
        self,
        session: Reachable,
        *,
        group: Name,
        point: Name,
        points: Sequence[Name] | None = None,
        digest: str | None = None,
        skip_conflicts: bool = False,
        force: bool = False,
    ) -> Rewound:
        """Takes back the point and all after it in the session's transaction, verified before it returns.

        Whatever it raises, nothing was changed. With the `digest` of a plan nothing but that plan is done,
        else ConflictError `journal.changed`. Raises JournalConflict (`journal.conflict`) with its plan when
        something changed since, unless that is skipped, and with it all older changes of it, or overwritten
        (`force`). What was taken back is not taken back again. Objects of the session are expired.
        """
        wish = Wish(group, point, points, digest=digest, skip=skip_conflicts, force=force)
        return await carried(_target(session), lambda sync: self._core.rewind(sync, wish))

    async def redo(
        self, session: Reachable, undo: str, *, group: Name | None = None, force: bool = False
    ) -> Rewound:
        """Does again what a rewind took back, by the id that it gave; `group` must be its group.

        Raises NotFoundError `journal.unknown`, ConflictError `journal.redone`, JournalConflict.
        """
        wish = Wish(group, undo=undo, force=force)
        return await carried(_target(session), lambda sync: self._core.rewind(sync, wish))

    async def forget(
        self, session: Reachable, *, group: Name, point: Name, points: Sequence[Name] | None = None
    ) -> int:
        """Deletes the journal of the point and all after it, whose writes stay; how many acts.

        For messages that go while what they did remains: no later rewind takes it back.
        """
        wish = Wish(group, point, points)
        return await carried(_target(session), lambda sync: self._core.forget(sync, wish))

    async def move(self, session: Reachable, from_group: Name, to_group: Name) -> int:
        """Gives the journal of one group to another, as when a guest signs up; how many entries."""
        return await carried(_target(session), lambda sync: self._core.move(sync, from_group, to_group))

    async def expire(self, session: Reachable, *, older_than: timedelta = timedelta(days=30)) -> int:
        """Deletes what is older, of all groups; how many acts. Plans then say that there was more."""
        return await carried(_target(session), lambda sync: self._core.expire(sync, older_than))


def _target(given: object) -> AsyncSession | AsyncConnection:
    found = given() if isinstance(given, async_scoped_session) else given
    if isinstance(found, AsyncSession | AsyncConnection):
        return found
    raise UsageError(
        "journal.session",
        f"Journal works with an AsyncSession or an AsyncConnection, not with {type(given).__name__}.",
        "Use SyncJournal for Session and Connection.",
    )


def _connection(given: object) -> AsyncConnection:
    if isinstance(given, AsyncConnection):
        return given
    raise UsageError(
        "journal.session",
        f"The journal is installed through an AsyncEngine or an AsyncConnection, not {type(given).__name__}.",
        "Use SyncJournal for Engine and Connection.",
    )
