"""The kernel: one home, one store, one router, and the lives of its modules."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

import anyio
from anyio.abc import TaskGroup

from takeback import discovery, trust
from takeback.callers import Caller
from takeback.console import ConsoleModule
from takeback.context import Context, Scope
from takeback.errors import TakebackError
from takeback.events import Events
from takeback.home import Home
from takeback.kernel_settings import KernelSettings
from takeback.lives import Life
from takeback.lock import HomeLock
from takeback.module import Doorway, Host, Module
from takeback.neighbours import Neighbours
from takeback.patience import Patience
from takeback.reach import Rule, Rules
from takeback.rewinding import Rewinders
from takeback.router import Router
from takeback.settings import load_settings, section
from takeback.sources import Source
from takeback.store import Store
from takeback.supervisor import Supervisor

_log = logging.getLogger("takeback.kernel")
_CONSOLE = "kernel"
_DAY = 86_400
_EVENTS_KEPT = 10_000  # so that a surface that was away for long can still resume


class Kernel:
    """A kernel over one home: `async with Kernel(home) as kernel:`.

    `settings` are sections by name, read from the home's file where they are not given. `modules` are
    module classes or folders; without them the built-in ones run and those the person has enabled.
    Entering raises `home.locked` with the owner when another process has the home, and what the store
    and the settings raise. A module that can't start stops nobody.
    """

    def __init__(
        self,
        home: Home | Path | str,
        *,
        settings: Mapping[str, Any] | None = None,
        modules: Iterable[type[Module] | Path | str | Source] | None = None,
        patience: Patience | None = None,
    ) -> None:
        self.home = home if isinstance(home, Home) else Home.at(home)
        self._given = None if modules is None else tuple(modules)
        self._settings: Mapping[str, Any] | None = settings
        self._patience = patience
        self._stack = AsyncExitStack()
        self.problems: tuple[discovery.Problem, ...] = ()
        self._neighbours: Neighbours | None = None

    async def __aenter__(self) -> Kernel:
        async with AsyncExitStack() as stack:
            self.home.create(sockets=False)
            if self._settings is None:
                self._settings = load_settings(self.home, {})
            own = section(self._settings, _CONSOLE, KernelSettings)
            lock = HomeLock.acquire(self.home)
            stack.callback(lock.release)
            made = self.home.state / "database.made"
            _require_database(self.home, made)
            self.store = await Store.open(self.home.database)
            stack.push_async_callback(self.store.close)
            await self.store.migrate(_CONSOLE + ".modules", trust.MIGRATIONS)
            self.events = Events(self.store)
            stack.push_async_callback(self.events.close)
            self.trust = trust.Trust(self.store)
            await self.trust.load()
            await self._start(stack, own)
            made.touch(mode=0o600)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    @property
    def tools(self) -> Router:
        """The router, which knows every running tool."""
        return self.router

    def enter(
        self,
        caller: str | Caller,
        *,
        session: str | None = None,
        turn: str | None = None,
        scope: Scope | None = None,
        dry_run: bool = False,
        present: bool = False,
    ) -> Context:
        """A context for a caller, for the program that runs this kernel; raises `caller.malformed`.

        An agent without a scope may touch nothing.
        """
        parsed = caller if isinstance(caller, Caller) else Caller.parse(caller)
        if parsed.kind == "agent" and scope is None:
            scope = Scope()
        return self.router.root(
            parsed, session=session, turn=turn, scope=scope, dry_run=dry_run, present=present
        )

    async def set_trust(self, name: str, trusted: bool) -> None:
        """Let an added module see tools of reach *modules*, or no longer; raises as `trustable` does."""
        life = self.trustable(name)
        await self.trust.say(name, life.source.distribution, trusted=trusted)
        self._use_rules()

    async def set_enabled(self, name: str, enabled: bool) -> None:
        """Switch a module on or off, now and at every start; raises as `switchable` does."""
        life = self.switchable(name)
        await self.trust.say(name, life.source.distribution, enabled=enabled)
        await (self.supervisor.enable(name) if enabled else self.supervisor.disable(name))

    def trustable(self, name: str) -> Life:
        """A module whose trust is the person's to give; raises `module.unknown`, `module.builtin`."""
        life = self.supervisor.life(name)
        if life.source.builtin:
            raise TakebackError(
                "module.builtin",
                f"Module {name} is part of takeback, so there is no trust to give or take",
                "Trust is for modules that were added.",
            )
        return life

    def switchable(self, name: str) -> Life:
        """A module that can be switched on and off; raises `module.unknown`, `module.needed`."""
        life = self.supervisor.life(name)
        if name == _CONSOLE:
            raise TakebackError(
                "module.needed",
                "The kernel's own tools can't be switched off",
                "Switch off the modules that you don't want.",
            )
        return life

    # ------------------------------------------------------------------ starting

    async def _start(self, stack: AsyncExitStack, own: KernelSettings) -> None:
        self.own = own
        self.router = Router()
        tasks = await self._open_tasks(stack)
        patience = self._patience or Patience(start=own.start_seconds, stop=own.stop_seconds)
        self.supervisor = Supervisor(
            tasks, self._make, self._sources(), patience=patience, on_change=self._changed
        )
        self._use_rules()
        self.router.why_off = self._why_off
        stack.push_async_callback(self.supervisor.stop)
        await self.supervisor.start()
        self._neighbours = Neighbours(tasks, self.supervisor.lives)
        self._neighbours.stir()
        await self._neighbours.told(patience.start)
        tasks.start_soon(self._forget_daily)

    async def _open_tasks(self, stack: AsyncExitStack) -> TaskGroup:
        """A task group in a task of its own, so that the program's own exceptions leave as they are."""
        opened: asyncio.Future[TaskGroup] = asyncio.get_running_loop().create_future()

        async def hold() -> None:
            async with anyio.create_task_group() as tasks:
                opened.set_result(tasks)
                await closing.wait()
                tasks.cancel_scope.cancel()

        async def close() -> None:
            closing.set()
            with anyio.CancelScope(shield=True):
                await holder

        closing = anyio.Event()
        holder = asyncio.create_task(hold(), name="takeback")
        stack.push_async_callback(close)
        return await opened

    def _sources(self) -> list[Source]:
        if self._given is None:
            found = discovery.find(self.own.enabled, self.own.disabled)
        else:
            found = discovery.settle(_source(one) for one in self._given)
        self.problems = (*found.problems, *self._stray_sections(found.sources))
        for problem in self.problems:
            _log.warning("Module %s is left out: %s", problem.name, problem.reason)
        sources = [Source.of(ConsoleModule), *found.sources]
        said = {source.name: self.trust.enabled(source.name, source.distribution) for source in sources}
        return [
            source if (word := said[source.name]) is None else replace(source, enabled=word)
            for source in sources
        ]

    def _stray_sections(self, sources: Iterable[Source]) -> list[discovery.Problem]:
        """Sections of the settings that belong to no module, so that a misspelt one is noticed."""
        known = {_CONSOLE, *(source.name for source in sources)}
        reason = "The settings have a section of this name, but there is no such module"
        return [discovery.Problem(name, "", reason) for name in sorted(set(self._settings or ()) - known)]

    async def _make(self, source: Source) -> Module:
        made = source.load()
        manifest = source.manifest
        assert manifest is not None, "a source whose class loads has a manifest"
        assert self._settings is not None
        settings = None if made.Settings is None else section(self._settings, source.name, made.Settings)
        if source.name != _CONSOLE:
            await self.store.migrate(source.name, made.migrations)
        if manifest.door:
            self.home.create()
        host = Host(
            name=source.name,
            manifest=manifest,
            settings=settings,
            store=self.store,
            events=self.events,
            home=self.home,
            tools=self.router,
            ctx=self.router.root(Caller.module(source.name)),
            rewound=Rewinders(self.supervisor.lives).tell,
            door=Doorway(self.router, source.name) if manifest.door and source.builtin else None,
            kernel=self if source.name == _CONSOLE else None,
            log=logging.getLogger(f"takeback.{source.name}"),
        )
        module = made(host)
        self.router.withdraw(source.name)
        self.router.offer(module, module.tools, self.supervisor.gate(source.name))
        return module

    def _changed(self, name: str, state: str, why: str) -> None:
        _log.info("Module %s is %s%s", name, state, f" ({why})" if why else "")
        self.router.touch()
        if self._neighbours is not None:
            self._neighbours.stir()

    def _why_off(self, name: str) -> str | None:
        life = self.supervisor.lives.get(name)
        return None if life is None or life.state == "running" else life.shown

    async def _forget_daily(self) -> None:
        while True:
            before = datetime.now(UTC) - timedelta(days=self.own.events_days)
            try:
                await self.events.prune(before, _EVENTS_KEPT)
            except TakebackError as error:  # a full disk, say: what is old can wait another day
                _log.warning("Old events could not be removed: %s", error)
            await anyio.sleep(_DAY)

    def _use_rules(self) -> None:
        sources = [life.source for life in self.supervisor.lives.values()]
        self.router.use_rules(
            Rules(
                builtin=frozenset(source.name for source in sources if source.builtin),
                trusted=frozenset(s.name for s in sources if self.trust.trusts(s.name, s.distribution)),
                calls=tuple((s.name, s.manifest.calls) for s in sources if s.manifest is not None),
                rules=tuple(Rule(r.effect, r.caller, r.tool, r.reason) for r in self.own.rules),
            )
        )


def _require_database(home: Home, made: Path) -> None:
    """An empty log is not what somebody gets whose database was lost."""
    try:
        gone = made.exists() and (not home.database.exists() or not home.database.stat().st_size)
    except OSError:
        return  # opening it says what is wrong
    if gone:
        raise TakebackError(
            "store.gone",
            f"takeback's database {home.database} is gone or empty, though there was one",
            f"Put a backup in its place. To begin with an empty log, delete {made}.",
        )


def _source(given: type[Module] | Path | str | Source) -> Source:
    if isinstance(given, Source):
        return given
    return Source.at(Path(given)) if isinstance(given, str | os.PathLike) else Source.of(given)
