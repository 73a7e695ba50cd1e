"""Restoring: the inverse of every act on rows, and of itself. All of an entry is given back, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from takeback import moments
from takeback.context import Context
from takeback.errors import ConflictError, NotFoundError, RefusedError, TakebackError
from takeback_acts.rows import barring, entered, failures, ids, looking, scopes
from takeback_acts.rows.acting import Outcome, outcome_of
from takeback_acts.rows.changes import Change
from takeback_acts.rows.connections import Connection, Connections
from takeback_acts.rows.effects import AGAINST
from takeback_acts.rows.entries import Entry, Stored
from takeback_acts.rows.models import (
    Answers,
    Happened,
    Happening,
    Resources,
    Restore,
    Restored,
    Versions,
)
from takeback_acts.rows.models import Effect as Told
from takeback_acts.rows.participants import Participant
from takeback_acts.rows.resources import parse
from takeback_acts.rows.sessions.session import Session
from takeback_acts.rows.telling import effects_of
from takeback_core.undo import begin

T = TypeVar("T")


class _Took(NamedTuple):
    """What taking back came to; without an outcome there was nothing to do, or too much against it."""

    effects: list[Told]
    clean: bool
    outcome: Outcome | None


class Restorer:
    """Takes entries of a journal back in the transaction of the plan that they belong to."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._seconds = connections.settings.statement_seconds

    async def restore(self, ctx: Context, args: Restore) -> Restored:
        """Judges an entry and gives it back.

        Raises RefusedError `scope.confined`, `rows.not_connected`, ConflictError `undo.changed`,
        `rows.conflict`, NotFoundError `rows.entry`.
        """
        participant = await self._participant(ctx, self._connection(args.database))
        if ctx.joint is not None:
            return await self._restore(ctx, args, participant)
        try:
            restored = await self._restore(ctx, args, participant)
        except BaseException:
            await participant.rollback()
            raise
        await (participant.rollback() if ctx.dry_run else participant.commit())
        return restored

    async def versions(self, ctx: Context, args: Resources) -> Versions:
        """Tells versions; within a plan as its steps so far have left them."""
        by_database: dict[str, list[str]] = {}
        for name in args.resources:
            place = parse(name)
            scopes.require(ctx.scope, place.database, [place.table])
            by_database.setdefault(place.database, []).append(name)
        found: dict[str, str] = {}
        for database, names in by_database.items():
            found |= await self._versions(ctx, self._connection(database), names)
        return Versions(versions=found)

    async def happened(self, args: Happened) -> Answers:
        """Tells from the journals which begun acts have happened."""
        answers: list[Happening | None] = []
        for given in args.inputs:
            wanted = Restore.model_validate(given)
            connection = self._connection(wanted.database)
            answers.append(await self._look(connection, partial(_happened, connection, wanted.entry)))
        return Answers(answers=answers)

    # ------------------------------------------------------------------ within a plan

    async def _participant(self, ctx: Context, connection: Connection) -> Participant:
        """The database's part in a plan, opened when it is first asked for."""
        key = f"rows:{connection.name}"
        known: Participant | None = ctx.joint.get(key) if ctx.joint is not None else None
        if known is not None:
            return known
        participant = Participant(connection)
        await participant.open()
        if ctx.joint is not None:
            try:
                ctx.joint.join(key, participant)
            except BaseException:
                await participant.rollback()
                raise
        return participant

    async def _restore(self, ctx: Context, args: Restore, participant: Participant) -> Restored:
        connection = participant.connection
        entry = Entry(ids.new(), moments.stamp(), ctx.session or "", ctx.turn or "", "rows.restore")
        took = await participant.run(partial(self._take_back, ctx, connection, args, entry))
        if ctx.dry_run or took.outcome is None:
            return Restored(effects=took.effects)
        try:
            opened = await begin(
                ctx,
                tool="rows.restore",
                input={"database": connection.name},
                summary=took.outcome.summary,
                inverse=("rows.restore", {"database": connection.name, "entry": entry.id, "only": None}),
                touched=took.outcome.touched,
            )
        except BaseException as error:
            participant.doom(error)
            raise
        participant.counts(ctx, opened, entry.id)
        return Restored(effects=took.effects, act=opened.id)

    async def _versions(self, ctx: Context, connection: Connection, names: list[str]) -> dict[str, str]:
        if ctx.joint is not None:
            participant = await self._participant(ctx, connection)

            def inside(session: Session) -> dict[str, str]:
                return looking.versions(connection, session.dialect, session.link, session.catalog, names)

            return await participant.run(inside)

        def outside(session: Session) -> dict[str, str]:
            catalog = session.refresh()
            return session.snapshot(
                lambda link: looking.versions(connection, session.dialect, link, catalog, names)
            )

        return await self._look(connection, outside)

    async def _look(self, connection: Connection, fn: Callable[[Session], T]) -> T:
        def within(session: Session) -> T:
            with failures.reported(connection.name, session.dialect):
                return fn(session)

        return await connection.worker.run(within, seconds=self._seconds)

    def _connection(self, name: str) -> Connection:
        try:
            return self._connections.get(name)
        except NotFoundError:
            raise RefusedError(
                "rows.not_connected",
                f"Database {name:.80} is not connected any more",
                "Connect it under that name again: `takeback rows connect NAME URL`.",
            ) from None

    # ------------------------------------------------------------------ on the worker's thread

    def _take_back(
        self, ctx: Context, connection: Connection, args: Restore, entry: Entry, session: Session
    ) -> _Took:
        ledger = connection.ledger(session)
        stored = _entry(ledger.entries(session.link, ids=[args.entry], live=False), connection.name)
        names = entered.touched(stored, connection.names, session.catalog)
        wanted = entered.chosen(names, args.only)
        for name in wanted:
            ctx.confine(name)
        if not ctx.dry_run:
            _require_expected(ctx, connection, session, wanted)
        taken = ledger.take_back(
            session.link,
            [stored],
            id=entry.id,
            at=entry.at,
            only=None if args.only is None else _parts(connection, session, wanted),
            force=ctx.force,
        )
        effects = effects_of(connection, session, taken, wanted)
        if not taken.clean and not ctx.dry_run:
            raise _conflict(connection.name, effects)
        changes: list[Change] = taken.changes if taken.clean else []
        outcome = outcome_of(connection, session, changes, undone=True) if changes else None
        return _Took(effects, taken.clean, outcome)


def _entry(found: list[Stored], database: str) -> Stored:
    if not found:
        raise NotFoundError(
            "rows.entry",
            f"The journal of database {database} does not have that act any more",
            "It was removed there, or the database was restored from before the act. It can't be taken back.",
        )
    return found[0]


def _happened(connection: Connection, entry: str, session: Session) -> Happening | None:
    found = barring.settled(connection, session, [entry])
    if not found:
        return None
    return entered.happening(connection.name, found[0], connection.names, session.catalog)


def _require_expected(ctx: Context, connection: Connection, session: Session, names: list[str]) -> None:
    """Raises ConflictError `undo.changed` unless each resource has the version that the plan counted on."""
    if ctx.confined_to is None:
        return
    now = looking.versions(connection, session.dialect, session.link, session.catalog, names)
    for name, version in now.items():
        if ctx.confined_to[name] != version:
            raise ConflictError(
                "undo.changed",
                f"{name:.500} has changed since the plan was made",
                "Preview the undo again; nothing was changed.",
                retryable=True,
            )


def _parts(connection: Connection, session: Session, names: list[str]) -> set[tuple[str, Any, str]]:
    """Resources as the engine names parts: table, key in its one form, column."""
    found = set()
    for name in names:
        place = parse(name)
        key = connection.names.key(place)
        table = session.catalog.tables.get(place.table)
        if table is not None and len(key) == len(table.key):
            key = table.identify(key)
        found.add((place.table, key, place.column))
    return found


def _conflict(database: str, effects: list[Told]) -> TakebackError:
    against = [one for one in effects if one.action in AGAINST]
    first = against[0]
    return ConflictError(
        "rows.conflict",
        f"{first.resource:.500} can't be given back: {first.reason or first.action}",
        "Nothing was changed. Look at the preview; the person can overwrite with force.",
        data={"effects": [one.model_dump() for one in against[:100]]},
    )
