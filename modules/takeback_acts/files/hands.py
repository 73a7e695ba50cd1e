"""Hands: the threads that carry scripts out, at work before the intent is durable and after the effect is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from queue import SimpleQueue

from anyio import CancelScope

from takeback_acts.files.beneath import Home
from takeback_acts.files.script import Script
from takeback_acts.files.supply import Supply

_MOST = 16


class Hands:
    """A few threads, each of which does all of an act's work on disk."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._pool = ThreadPoolExecutor(_MOST, "files")

    def rest(self) -> None:
        """Ends the threads, when nothing is carried out any more."""
        self._pool.shutdown(wait=False)

    @asynccontextmanager
    async def on(self, script: Script, supply: Supply) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        """Has a thread at work on a script; gives what runs it, to be called once the intent is durable.

        What leaves no trace in a crash is done at once, while the intent is committed. Calling raises what
        `Script.prepare` and `Script.run` raise; both have ended when the block has.
        """
        loop = asyncio.get_running_loop()
        intended: SimpleQueue[bool] = SimpleQueue()
        done: asyncio.Future[BaseException | None] = loop.create_future()

        def work() -> None:
            failed: BaseException | None = None
            try:
                script.prepare(supply)
                if intended.get():
                    script.run(supply, self._home)
            except BaseException as error:
                failed = error
            finally:
                script.close()
            loop.call_soon_threadsafe(done.set_result, failed)

        async def run() -> None:
            intended.put(True)
            with CancelScope(shield=True):
                await asyncio.shield(done)
            if failed := done.result():
                raise failed

        # Once the caller waits for its commit: until then the thread would only keep it from computing.
        loop.call_soon(self._pool.submit, work)
        try:
            yield run
        finally:
            if not done.done():
                intended.put(False)
                with CancelScope(shield=True):
                    await asyncio.wait([done])
