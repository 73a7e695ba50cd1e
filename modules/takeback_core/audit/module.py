"""The audit module: every routed call, refused ones too, written in batches behind the calls."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from takeback import Context, Host, Module, NotFoundError, TakebackError, UsageError, tool
from takeback.moments import parse
from takeback_core.audit import log
from takeback_core.audit.buffer import Buffer
from takeback_core.audit.models import ById, One, Query, Rows, Settings

_RETRY = 5.0
_DAY = 86_400
_AT_ONCE = 5_000


class AuditModule(Module):
    """Hears of every call through the kernel and stores who, what, why and how it ended; never arguments."""

    Settings = Settings
    migrations = (log.SCHEMA, log.RULE)

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._buffer = Buffer()
        self._writing = anyio.Lock()

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        """Listen, write in the background, and write the rest before it ends."""
        stop = self.host.on_call(self._buffer.note)
        tasks.start_soon(self._write_batches)
        tasks.start_soon(self._forget_daily)
        try:
            yield
        finally:
            stop()
            with anyio.CancelScope(shield=True):
                await self._flush()

    @tool(effect="read", reach=("person",), name="list")
    async def list_calls(self, ctx: Context, args: Query) -> Rows:
        """List calls, newest first, by caller, tool, decision and time."""
        since = None if args.since is None else _moment(args.since)
        await self._flush()
        rows, following = await self.host.store.read(lambda db: log.page(db, args, since))
        return Rows(rows=rows, next=following)

    @tool(effect="read", reach=("person",))
    async def get(self, ctx: Context, args: ById) -> One:
        """Show one call and the calls made within it; raises NotFoundError `audit.unknown`."""
        await self._flush()
        found = await self.host.store.read(lambda db: log.one(db, args.id))
        if found is None:
            raise NotFoundError(
                "audit.unknown",
                f"There is no call {args.id!r:.80} in the audit",
                f"Rows are kept {self.host.settings.days} days; `takeback audit` lists them.",
            )
        row, calls = found
        return One(row=row, calls=calls)

    async def _write_batches(self) -> None:
        while True:
            await self._buffer.batch()
            if not await self._flush():
                await anyio.sleep(_RETRY)

    async def _flush(self) -> bool:
        async with self._writing:
            rows = self._buffer.take()
            if not rows:
                return True
            try:
                with anyio.CancelScope(shield=True):
                    await self.host.store.transaction(lambda tx: log.write(tx, rows))
            except TakebackError as error:
                self._buffer.give_back(rows)
                self.host.log.warning("%d audit rows could not be written: %s", len(rows), error)
                return False
            return True

    async def _forget_daily(self) -> None:
        while True:
            try:
                await self._forget()
            except TakebackError as error:
                self.host.log.warning("old audit rows could not be removed: %s", error)
            await anyio.sleep(_DAY)

    async def _forget(self) -> None:
        before = int((time.time() - self.host.settings.days * _DAY) * 1_000_000)
        # In steps, so that no call waits behind the removal of a month.
        while await self.host.store.transaction(lambda tx: log.forget(tx, before, _AT_ONCE)) == _AT_ONCE:
            pass


def _moment(text: str) -> int:
    """Microseconds since the epoch; raises UsageError `audit.since`."""
    try:
        return round(parse(text).timestamp() * 1_000_000)
    except (ValueError, OverflowError):
        raise UsageError(
            "audit.since", f"{text!r:.40} is not an ISO 8601 moment", "Write it as in 2026-11-30T12:00:00Z."
        ) from None
