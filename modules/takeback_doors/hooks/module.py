"""The hooks' door: coding agents keep their own tools, and what those change can be taken back."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from takeback import Check, Context, Host, Module, TakebackError, tool
from takeback.moments import stamp
from takeback_doors.hooks import calls, lost, processes, sessions
from takeback_doors.hooks.calls import Calls
from takeback_doors.hooks.capture import Capture
from takeback_doors.hooks.connecting.connector import Connector
from takeback_doors.hooks.events import event_of
from takeback_doors.hooks.listening import GateSocket, UnreadableError, parsed
from takeback_doors.hooks.lost import Loss, Lost
from takeback_doors.hooks.models import Connect, Connected, Descent, NotCaptured, Nothing, Status, Which
from takeback_doors.hooks.sessions import Sessions
from takeback_doors.hooks.settings import HookSettings
from takeback_doors.hooks.spool import Entry, Spool
from takeback_doors.hooks.taking import Spooled, Taker

_DAY_NS = 86_400 * 10**9
_SHOWN = 50
_TOLD = 3
_AT_START = 3.0
_GATE = Path(__file__).with_name("gate") / "gate.py"


class HooksModule(Module):
    """Listens to the gates that agents run before and after each of their tools.

    It never keeps an agent from anything: what can't be captured is let pass, and told to the person.
    """

    Settings = HookSettings
    migrations = (sessions.TABLE + calls.TABLE + lost.TABLE,)

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._settings: HookSettings = host.settings
        self._sessions = Sessions(host.store)
        self._calls = Calls(host.store)
        self._lost = Lost(host.store)
        self._spool = Spool(host.home.data / "spool")
        capture = Capture(host)
        self._taker = Taker(host, self._sessions, self._calls, self._lost, capture)
        self._socket = GateSocket(self._socket_path, self._take, self._complain)
        self._spooling = anyio.Lock()

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        """Take in what was spooled, then listen."""
        await self._sessions.load()
        await self._calls.load()
        await self._lost.load()
        # Whoever looks into the log once the doors are open finds there what waited, as far as that is quick.
        await self._take_in(_AT_START)
        listener = await self._socket.open()
        async with anyio.create_task_group() as own:
            own.start_soon(self._socket.serve, listener)
            tasks.start_soon(self._watch)
            try:
                yield
            finally:
                # The name goes first: a gate that finds none starts a daemon at once.
                self._socket.forget_name()
                await listener.aclose()

    @tool(effect="read", reach=("person", "modules"))
    async def status(self, ctx: Context, args: Nothing) -> Status:
        """Show where agents' hooks find the door, what is under way, and what was not captured of late."""
        losses = self._lost.since(time.time_ns() - _DAY_NS)[:_SHOWN]
        return Status(
            socket=self._socket_path,
            spool=str(self._spool.folder),
            spooled=len(self._spool.waiting()),
            sessions=len(self._sessions),
            open_calls=len(self._calls),
            not_captured=[_shown(loss) for loss in losses],
        )

    @tool(effect="write", reach=("person",), person_only=True, previews=True, idempotent=True)
    async def connect(self, ctx: Context, args: Connect) -> Connected:
        """Put the gate into an agent's own settings, so that what its tools change is captured."""
        return await to_thread.run_sync(partial(self._connector(args).connect, dry_run=ctx.dry_run))

    @tool(effect="write", reach=("person",), person_only=True, previews=True, idempotent=True)
    async def disconnect(self, ctx: Context, args: Connect) -> Connected:
        """Take the gate out of an agent's settings again, and nothing else."""
        return await to_thread.run_sync(partial(self._connector(args).disconnect, dry_run=ctx.dry_run))

    def _connector(self, args: Connect) -> Connector:
        home = os.environ.get("TAKEBACK_HOME")
        command = [
            sys.executable,
            "-I",
            "-S",
            str(_GATE),
            args.agent,
            self._socket_path,
            str(self._spool.folder),
        ]
        return Connector(args.agent, args.folder, args.environ, [*command, *([home] if home else [])])

    @tool(effect="read", reach=("modules",))
    async def descent(self, ctx: Context, args: Which) -> Descent:
        """Tell which agent's session a process descends from, if any."""
        for process in processes.ancestors(args.pid):
            if session := self._sessions.of_process(process):
                return Descent(
                    agent=session.agent, session=session.id, turn=session.turn, roots=list(session.roots)
                )
        return Descent()

    async def checks(self) -> list[Check]:
        """Whether gates can reach the door, and what was not captured in the last day."""
        return [self._check_spool(), self._check_lost()]

    def _check_spool(self) -> Check:
        waiting = len(self._spool.waiting())
        detail = (
            f"{waiting} events of agents wait to be taken in" if waiting else "no event of an agent waits"
        )
        return Check(
            "hook spool", not waiting, detail, "They are taken in with the next event." if waiting else ""
        )

    def _check_lost(self) -> Check:
        losses = self._lost.since(time.time_ns() - _DAY_NS)
        if not losses:
            return Check("captured by hooks", True, "nothing that agents did in the last day was missed")
        words = [
            f"{loss.agent or 'an agent'}: {loss.what} ({loss.why})".replace(": (", " (") for loss in losses
        ]
        more = f" and {len(words) - _TOLD} more" if len(words) > _TOLD else ""
        return Check(
            "captured by hooks",
            False,
            f"not captured in the last day: {'; '.join(words[:_TOLD])}{more}",
            "What it did there can't be taken back from here.",
        )

    @property
    def _socket_path(self) -> str:
        return str(self.host.home.runtime / "gate.sock")

    async def _take(
        self, agent: str, told: dict[str, Any], gate: int
    ) -> Callable[[], Awaitable[None]] | None:
        began = anyio.current_time()
        process = processes.agent_of(gate)
        event = event_of(agent, told)
        if self._spool.waiting():
            await self._take_in()
        call = await self._taker.take(event, process)
        if call is None:
            return None
        if anyio.current_time() - began > self._settings.answer_seconds:
            await self._taker.came_too_late(call)
            return None
        return lambda: self._taker.came_too_late(call)

    async def _take_in(self, seconds: float = inf) -> None:
        """Sees to what was spooled, oldest first, before anything that came later."""
        until = anyio.current_time() + seconds
        async with self._spooling:
            for name in await to_thread.run_sync(self._spool.waiting):
                if anyio.current_time() > until:
                    return
                entry = await to_thread.run_sync(self._spool.read, name)
                try:
                    await self._take_one(name, entry)
                except TakebackError as error:
                    self._complain(entry.agent if entry else "", f"a spooled event failed: {error.message}")
                await to_thread.run_sync(self._spool.remove, name)

    async def _take_one(self, name: str, entry: Entry | None) -> None:
        try:
            if entry is None:
                raise UnreadableError(f"the spooled event {name} is damaged")
            event = event_of(entry.agent, parsed(entry.event))
        except (UnreadableError, KeyError) as error:
            self._complain(entry.agent if entry else "", str(error))
            return
        await self._taker.take(event, None, Spooled(entry.at, entry.images))

    async def _watch(self) -> None:
        while True:
            try:
                await self._take_in()
                await self._taker.settle_dead()
            except TakebackError as error:
                self.host.log.warning("what agents left open could not be settled: %s", error.code)
            await anyio.sleep(self._settings.watch_seconds)

    def _complain(self, agent: str, why: str) -> None:
        self._lost.note(agent, "", "an event", why)
        self.host.log.warning("an event of %s was passed: %s", agent or "an agent", why)


def _shown(loss: Loss) -> NotCaptured:
    return NotCaptured(
        at=stamp(loss.at / 1e9), agent=loss.agent, session=loss.session, what=loss.what, why=loss.why
    )
