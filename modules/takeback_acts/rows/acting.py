"""Acting: one act on a database, from its transaction to the confirmed row in the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio

from takeback import faults, moments
from takeback.context import Context
from takeback.errors import RefusedError, TakebackError
from takeback_acts.rows import failures, ids, scopes, summaries, values
from takeback_acts.rows.changes import Change
from takeback_acts.rows.connections import Connection, Connections
from takeback_acts.rows.entries import Entry
from takeback_acts.rows.gates import Gate
from takeback_acts.rows.journal import Ledger
from takeback_acts.rows.models import Done, RowKey
from takeback_acts.rows.naming import Leaving, Naming
from takeback_acts.rows.resources import Triple, parse
from takeback_acts.rows.sessions.session import Session
from takeback_acts.rows.workers import Work
from takeback_core.undo import BegunAct, abandon, begin, confirm

_TOLD = 100
_LONGEST = 16_000


@dataclass(frozen=True, slots=True)
class Plan:
    """What an act is going to do: its tool, what the log keeps of its input, and the statements.

    The log has no values. `table` is the one it is about; `body` runs within the transaction.
    """

    tool: str
    input: Mapping[str, Any]
    summary: str
    table: str
    body: Callable[[Session], object]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a transaction came to: what it touched, in the log's words and in the caller's."""

    touched: list[Triple]
    summary: str
    changed: dict[str, int]
    rows: list[RowKey]


class Actor:
    """Carries acts out.

    The intent is written to the log while the transaction runs, which waits for it before it commits.
    """

    def __init__(self, connections: Connections, naming: Naming) -> None:
        self._connections = connections
        self._settings = connections.settings
        self._naming = naming

    async def act(self, ctx: Context, name: str | None, plan: Plan) -> Done:
        """Does it. Raises what the database has against it, in takeback's words; nothing was changed then."""
        connection = self._connections.get(name, ctx.scope)
        async with connection.worker.turn():
            opened, outcome = await self._carry_out(ctx, connection, plan)
        database = connection.name
        if outcome is None:
            return Done(act=None, database=database, summary="Nothing had to be changed", changed={})
        return Done(
            act=opened.id,
            database=database,
            summary=outcome.summary,
            changed=outcome.changed,
            rows=outcome.rows,
        )

    async def _carry_out(
        self, ctx: Context, connection: Connection, plan: Plan
    ) -> tuple[BegunAct, Outcome | None]:
        about = {"table": plan.table}
        entry = Entry(ids.new(), moments.stamp(), ctx.session or "", ctx.turn or "", plan.tool, about)
        gate, files = Gate(), self._naming.of(ctx, connection.name, plan.tool, entry.id)
        opening = asyncio.ensure_future(self._begin(ctx, connection.name, entry, plan, gate))
        work: Work[Outcome | None] | None = None
        try:
            # The intent goes to the disk first: what the other thread does then takes no longer than that.
            await asyncio.sleep(0)
            work = connection.worker.submit(partial(self._perform, ctx, connection, entry, plan, gate, files))
            opened = await asyncio.shield(opening)
            outcome = await connection.worker.outcome(work, seconds=self._settings.statement_seconds)
        except BaseException:
            gate.shut()
            with anyio.CancelScope(shield=True):
                if work is not None:
                    await connection.worker.stop(work)
                await self._settle(ctx, opening, work)
                await files.end(gone=work is not None and _has_happened(work.future))
            raise
        with anyio.CancelScope(shield=True):
            await self._close(ctx, opened, outcome)
            await files.end(gone=True)
        return opened, outcome

    async def _begin(self, ctx: Context, database: str, entry: Entry, plan: Plan, gate: Gate) -> BegunAct:
        inverse = {"database": database, "entry": entry.id, "only": None}
        return await begin(
            ctx,
            tool=plan.tool,
            input={"database": database, **plan.input},
            summary=plan.summary,
            inverse=("rows.restore", inverse),
            durable=gate.open,
        )

    async def _settle(
        self, ctx: Context, opening: asyncio.Future[BegunAct], work: Work[Outcome | None] | None
    ) -> None:
        """Who was refused or cancelled, or whose time was over, may have been through all the same."""
        with suppress(TakebackError):  # the log did not take it, and then it has not happened
            opened = await opening
            if work is not None and _has_happened(work.future):
                await self._close(ctx, opened, work.future.result())
                return
            if work is None or not _is_unsure(work.future):
                opened.nothing_is_left()
            await abandon(ctx, opened)

    async def _close(self, ctx: Context, opened: BegunAct, outcome: Outcome | None) -> None:
        if outcome is None:
            opened.nothing_is_left()
            await abandon(ctx, opened)
            return
        opened.confirm_with(touched=outcome.touched, summary=outcome.summary)
        await confirm(ctx, opened)

    # ------------------------------------------------------------------ on the worker's thread

    def _perform(
        self,
        ctx: Context,
        connection: Connection,
        entry: Entry,
        plan: Plan,
        gate: Gate,
        files: Leaving,
        session: Session,
    ) -> Outcome | None:
        with failures.reported(connection.name, session.dialect):
            session.begin()
            try:
                outcome = self._write(ctx, connection, entry, plan, files, session)
                if outcome is not None:
                    faults.point("rows.written")
                    gate.passing(self._settings.statement_seconds)
                    faults.point("rows.committing")
                    session.dialect.commit(session.link)
                    faults.point("rows.committed")
            except BaseException:
                roll_back(session)
                raise
            if outcome is None:
                session.dialect.rollback(session.link)
            return outcome

    def _write(
        self,
        ctx: Context,
        connection: Connection,
        entry: Entry,
        plan: Plan,
        files: Leaving,
        session: Session,
    ) -> Outcome | None:
        ledger: Ledger = connection.ledger(session)
        written = ledger.write(session.link, entry, lambda _: plan.body(session))
        if not written.changes:
            return None
        self._require_allowed(ctx, connection.name, written.changes)
        session.require_captured()
        outcome = outcome_of(connection, session, written.changes, first=plan.table)
        files.keep(written.changes, session.catalog, self._settings.statement_seconds)
        return outcome

    def _require_allowed(self, ctx: Context, database: str, changes: Sequence[Change]) -> None:
        most = self._settings.most_changed
        if len(changes) > most:
            raise RefusedError(
                "rows.limit",
                f"The statement would change {len(changes)} rows, and an act may change {most}",
                "Nothing was changed. Change fewer at once, or raise [rows] most_changed.",
            )
        # Also what a cascade or a trigger reaches: what an agent may not touch, it may not have touched.
        scopes.require(ctx.scope, database, dict.fromkeys(change.table for change in changes))


def outcome_of(
    connection: Connection,
    session: Session,
    changes: Sequence[Change],
    *,
    first: str = "",
    undone: bool = False,
) -> Outcome:
    """What changes came to; raises RefusedError `rows.long_key` for a key that the log has no room for."""
    catalog, engine = session.catalog, session.dialect.name
    told = []
    for change in changes[:_TOLD]:
        table = catalog.tables[change.table]
        image = change.after if change.after is not None else change.before
        assert image is not None
        told.append(RowKey(table=table.name, key=values.named(engine, table, table.key_of(image))))
    found = connection.names.touched(catalog, changes)
    if longest := next((name for name, _, _ in found if len(name) > _LONGEST), None):
        raise RefusedError(
            "rows.long_key",
            f"A key of {parse(longest).table:.200} is too long to be kept in the log",
            "Nothing was changed. Change that row yourself.",
        )
    return Outcome(
        found,
        summaries.of(connection.name, changes, catalog, first=first, undone=undone),
        summaries.counts(changes),
        told,
    )


def roll_back(session: Session) -> None:
    """Leave everything as it was; what went wrong before is what must be heard."""
    with suppress(Exception):  # boundary: a connection that is gone has rolled back by itself
        session.dialect.rollback(session.link)


def _has_happened(future: asyncio.Future[Outcome | None]) -> bool:
    """Whether the transaction came to its end, whoever waited for it."""
    return future.done() and not future.cancelled() and future.exception() is None


def _is_unsure(future: asyncio.Future[Outcome | None]) -> bool:
    """Whether its connection was lost while it was being committed."""
    raised = future.exception()
    return isinstance(raised, TakebackError) and raised.code == "rows.unsure"
