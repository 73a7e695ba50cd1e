"""Events: told to listeners after commit, and kept for whoever comes back later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import anyio
from blinker import Namespace

from takeback import outbox
from takeback.outbox import Event, StoredEvent
from takeback.outline import name_of, outline

if TYPE_CHECKING:
    from takeback.store import Store

__all__ = ["Event", "Events", "StoredEvent"]

Callback = Callable[[int, Any], Awaitable[None] | None]
Unsubscribe = Callable[[], None]

log = logging.getLogger(__name__)

_EVERY = "*"
_PAGE = 100


class Events:
    """Who listens to what, over one store's outbox."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._signals = Namespace()
        self._running: set[asyncio.Future[None]] = set()
        self._wakes: set[asyncio.Event] = set()
        self._closed = False
        store.tell(self._deliver)

    def on(self, kind: str, callback: Callback) -> Unsubscribe:
        """Calls `callback(seq, event)` after the commit of every event of this kind, or of any for `*`.

        A plain function runs before the transaction's caller goes on, and must be quick; an async one runs as
        a task of its own. What it raises is logged and reaches nobody else.
        """
        listener = _Listener(callback)
        signal = self._signals.signal(kind)
        signal.connect(listener, weak=False)
        return lambda: signal.disconnect(listener)

    async def after(self, seq: int, limit: int = _PAGE) -> list[StoredEvent]:
        """Up to `limit` kept events that follow number `seq`, oldest first. Raises `events.gone`."""
        return await self._store.read(lambda connection: outbox.after(connection, seq, limit))

    async def follow(self, after: int | None = None) -> AsyncGenerator[StoredEvent, None]:
        """Every event that follows number `after`, each once, until `close`; without a number, from now on.

        Raises `events.gone` like `after`, also when they are pruned faster than they are taken.
        """
        wake = asyncio.Event()
        self._wakes.add(wake)
        try:
            seq = await self._store.read(outbox.last) if after is None else after
            while not self._closed:
                # Cleared before the look, so that what is committed during it wakes the next round.
                wake.clear()
                page = await self.after(seq)
                for event in page:
                    yield event
                    seq = event.seq
                if not page:
                    await wake.wait()
        finally:
            self._wakes.discard(wake)

    async def prune(self, before: datetime, keep: int) -> int:
        """Deletes events older than `before`, never the newest `keep`; returns how many went."""
        return await self._store.transaction(lambda tx: outbox.prune(tx.connection, before, keep))

    async def close(self, grace: float = 5.0) -> None:
        """Ends every `follow` and waits for the async listeners; `grace` seconds later it cancels them."""
        self._closed = True
        for wake in self._wakes:
            wake.set()
        with anyio.CancelScope(shield=True):  # bounded by the grace, and a half-told event helps nobody
            if self._running:
                await asyncio.wait(self._running, timeout=grace)
            for task in self._running:
                task.cancel()
            if self._running:
                await asyncio.wait(self._running, timeout=grace)

    def _deliver(self, told: Sequence[tuple[int, Event]]) -> None:
        if self._closed:
            return
        for seq, event in told:
            for kind in (event.kind, _EVERY):
                self._send(kind, seq, event)
        for wake in self._wakes:
            wake.set()

    def _send(self, kind: str, seq: int, event: Event) -> None:
        signal = self._signals.signal(kind)
        if not signal.receivers:
            return
        # Not signal.send: there the first listener that raises ends the round for the rest.
        for listener in list(signal.receivers_for(None)):
            waiting = listener(seq, event)
            if waiting is not None:
                task = asyncio.ensure_future(waiting)
                self._running.add(task)
                task.add_done_callback(self._running.discard)


class _Listener:
    """One subscription, so that the same callback can be subscribed twice."""

    def __init__(self, callback: Callback) -> None:
        self._callback = callback

    def __call__(self, seq: int, event: Event) -> Awaitable[None] | None:
        try:
            waiting = self._callback(seq, event)
        except Exception as error:
            self._report(event, error)
            return None
        return None if waiting is None else self._finish(event, waiting)

    async def _finish(self, event: Event, waiting: Awaitable[None]) -> None:
        try:
            await waiting
        except Exception as error:
            self._report(event, error)

    def _report(self, event: Event, error: Exception) -> None:
        log.error("listener %s of %s failed: %s", name_of(self._callback), event.kind, outline(error))
