"""Commands: what a command changed in its time becomes one act, whoever is killed meanwhile."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from takeback import faults
from takeback.callers import Caller
from takeback.context import Context
from takeback.errors import NotFoundError, TakebackError
from takeback.module import Host
from takeback_acts.files import accounts, births, grounds
from takeback_acts.files.beneath import Home
from takeback_acts.files.ledger import Ledger
from takeback_acts.files.models import BeginCommand, Begun, EndCommand, Ended
from takeback_acts.files.paths import encode, shown
from takeback_acts.files.rooted import Rooted
from takeback_acts.files.settings import FilesSettings
from takeback_acts.files.shelves import Shelves
from takeback_acts.files.windows import Window, Windows, born

_HOUR_NS = 3600 * 10**9
_OFTEN = 5.0


class Commands:
    """Opens and closes windows. Each window ends once, with the answer that it keeps."""

    def __init__(self, host: Host, windows: Windows, shelves: Shelves, ledger: Ledger, home: Home) -> None:
        self._host = host
        self._windows = windows
        self._shelves = shelves
        self._ledger = ledger
        self._home = home
        self._settings: FilesSettings = host.settings
        self._longest = int(self._settings.window_hours * _HOUR_NS)
        self._ending = anyio.Lock()
        self._ready = anyio.Event()

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        """Sees to what earlier processes left open; at the end baselines are put on their shelves."""
        await self._windows.load()
        self._tasks = tasks
        tasks.start_soon(self._look_back)
        tasks.start_soon(self._rest_often)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await self._shelves.close()

    async def begin(self, ctx: Context, args: BeginCommand) -> Begun:
        """Opens a window; raises what `grounds.chosen` and a root's capture raise.

        What its command does is kept in any case, so a caller whose limit has been passed opens none.
        """
        await self._ready.wait()
        self._shelves.require_room(accounts.acting(ctx.origin))
        chosen = await to_thread.run_sync(grounds.chosen, ctx.scope, args.roots, args.cwd, self._home)
        off = [root for root in chosen if grounds.switched_off(root, self._settings.not_captured)]
        chosen = tuple(root for root in chosen if root not in off)
        await self._end_lost(chosen)
        window = Window(
            id=secrets.token_hex(12),
            at=time.time_ns(),
            birth=births.now(),
            origin=ctx.origin,
            session=ctx.session,
            turn=ctx.turn,
            roots=chosen,
            cwd=shown(encode(args.cwd)),
            command=tuple(args.command),
            process=args.process or 0,
            born=born(args.process) if args.process else "",
        )
        self._windows.expect(window)
        try:
            notes = [_off(root) for root in off] + await self._open(window)
            await self._windows.begin(window)
        except BaseException:
            self._windows.drop(window)
            for root in chosen:
                self._shelves.rooted(root).end(window.id)
            raise
        return Begun(window=window.id, roots=[shown(root) for root in chosen], notes=notes)

    async def end(self, ctx: Context, args: EndCommand) -> Ended:
        """Closes a window and records what changed in it; raises NotFoundError `files.window_unknown`."""
        await self._ready.wait()
        async with self._ending:
            window = self._windows.open.get(args.window)
            if window is not None and _may(ctx, window):
                return await self._close(ctx, window, exit_code=args.exit_code)
            known = await self._windows.ended(args.window)
        if known is None or not _may(ctx, known[0]):
            raise NotFoundError(
                "files.window_unknown",
                f"There is no window {args.window:.24} of yours",
                "It is answered by files.begin_command, and known for some days after its end.",
            )
        return Ended.model_validate(known[1])

    async def _open(self, window: Window) -> list[str]:
        notes: list[str] = []
        for root in window.roots:
            changes = await self._shelves.rooted(root).begin(window.id)
            notes += changes.notes
        return notes

    async def _close(
        self, ctx: Context, window: Window, *, exit_code: int | None = None, interrupted: bool = False
    ) -> Ended:
        rooted = [self._shelves.rooted(root) for root in window.roots]
        for one in rooted:
            await self._look(one, window)
        seen = [one.seen(window.id) for one in rooted]
        ended = await self._ledger.record(ctx, window, seen, exit_code=exit_code, interrupted=interrupted)
        faults.point("files.command_recorded")
        await self._windows.end(window, ended.model_dump())
        for one in rooted:
            one.end(window.id)
            self._tasks.start_soon(self._save, one)
        return ended

    async def _look(self, rooted: Rooted, window: Window) -> None:
        try:
            await rooted.look(accounts.captured(window.origin))
        except TakebackError as error:
            rooted.seen(window.id).failed = error.message

    async def _save(self, rooted: Rooted) -> None:
        try:
            await rooted.save()
            await self._shelves.let_go()
            await self._shelves.rest(self._settings.idle_seconds)
        except TakebackError as error:
            self._host.log.warning("A baseline could not be saved: %s", error.code)

    async def _rest_often(self) -> None:
        while True:
            await anyio.sleep(max(_OFTEN, self._settings.idle_seconds / 2))
            try:
                await self._shelves.rest(self._settings.idle_seconds)
            except TakebackError as error:
                self._host.log.warning("A baseline could not be saved: %s", error.code)

    async def _look_back(self) -> None:
        """Ends what nobody will end any more, and goes on with what somebody will."""
        try:
            for window in list(self._windows.open.values()):
                for root in window.roots:
                    self._shelves.rooted(root).reopen(window.id)
            await self._end_all([window for window in self._windows.open.values() if not _lives(window)])
        finally:
            self._ready.set()

    async def _end_lost(self, roots: tuple[bytes, ...]) -> None:
        now = time.time_ns()
        await self._end_all(
            [
                window
                for window in self._windows.open.values()
                if window.is_lost(now, self._longest) and set(window.roots) & set(roots)
            ]
        )

    async def _end_all(self, windows: list[Window]) -> None:
        for window in windows:
            async with self._ending:
                if window.id in self._windows.open:
                    await self._interrupt(window)

    async def _interrupt(self, window: Window) -> None:
        """Records what changed in a window that nobody ended, as the act of whoever began it."""
        own = self._host.ctx
        ctx = own._replace(
            origin=window.origin,
            chain=(window.origin, *own.chain),
            session=window.session,
            turn=window.turn,
        )
        try:
            await self._close(ctx, window, interrupted=True)
        except TakebackError as error:
            self._host.log.warning("What an interrupted command changed is not recorded yet: %s", error.code)


def _off(root: bytes) -> str:
    return f"not captured: {shown(root):.300} is switched off by not_captured in the [files] settings"


def _lives(window: Window) -> bool:
    return bool(window.process) and not window.is_lost(time.time_ns(), 0)


def _may(ctx: Context, window: Window) -> bool:
    caller = Caller.parse(ctx.origin)
    return caller.kind == "person" or caller.same_actor(Caller.parse(window.origin))
