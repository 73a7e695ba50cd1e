"""Keeps modules alive: in order, each in a task of its own, and none in another's way."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from anyio.abc import TaskGroup

from takeback.errors import NotFoundError
from takeback.gate import Gate
from takeback.keeper import Keeper
from takeback.lives import Life, Make, State
from takeback.manifest import API, Manifest
from takeback.order import Order
from takeback.patience import Patience, Watch
from takeback.sources import Source
from takeback.standing import Standing

__all__ = ["Life", "Patience", "State", "Supervisor"]

_log = logging.getLogger("takeback.supervisor")
_UNKNOWN = Manifest(API, "", "")


class Supervisor:
    """Runs the lives of modules in the given task group, each with a keeper.

    `make` turns a source into a module, and may raise or never answer. `on_change` hears of every change of
    state as (name, state, why), at once and in order.
    """

    def __init__(
        self,
        tasks: TaskGroup,
        make: Make,
        sources: Iterable[Source] = (),
        *,
        patience: Patience | None = None,
        on_change: Callable[[str, State, str], object] | None = None,
    ) -> None:
        self._tasks = tasks
        self._make = make
        self._patience = patience or Patience()
        self._on_change = on_change
        self._lives: dict[str, Life] = {}
        self._standing = Standing(self._lives)
        self._watch = Watch(self._patience)
        self._keepers = 0
        self._started = False
        for source in sources:
            self._know(source)
        self._arrange()

    @property
    def lives(self) -> Mapping[str, Life]:
        """Every module known, by name."""
        return MappingProxyType(self._lives)

    def life(self, name: str) -> Life:
        """One module; raises NotFoundError `module.unknown`."""
        try:
            return self._lives[name]
        except KeyError:
            hint = "`takeback modules` lists the modules there are."
            raise NotFoundError("module.unknown", f"There is no module {name}", hint) from None

    def gate(self, name: str) -> Gate:
        """The module's gate, the same object for good; raises NotFoundError `module.unknown`."""
        return self.life(name).gate

    def accepting(self, name: str) -> bool:
        """Whether a new call to this module may begin."""
        life = self._lives.get(name)
        return life is not None and life.gate.open

    async def start(self) -> None:
        """Start every wanted module; return when each runs, has failed or waits for one that won't come."""
        self._started = True
        for life in self._lives.values():
            self._start_keeper(life)
        await self._settle(self._lives)

    async def stop(self) -> None:
        """Stop everything, dependents first; return when all have left or were abandoned."""
        self._standing.closing = True
        self._watch.poke()
        await self._watch.until(lambda: not self._keepers)

    async def add(self, source: Source) -> Life:
        """Take in one more module, and start it if it is enabled; ValueError when its name is taken."""
        life = self._know(source)
        self._arrange()
        if self._started:
            self._start_keeper(life)
            await self._settle(self._with_dependents(source.name))
        return life

    async def enable(self, name: str) -> Life:
        """Want the module, also after it failed for good; return when it and what needs it have settled."""
        life = self.life(name)
        life.wanted = True
        if not life.live and not life.abandoned:
            life.pausing = life.ran = False
            life.restarts = 0
            why = self._standing.hopeless(life)
            life.held = bool(why)
            self._enter(life, "failed" if why else "off", why)
        self._watch.poke()
        await self._settle(self._with_dependents(name))
        return life

    async def disable(self, name: str) -> Life:
        """Stop the module after what needs it, calls in flight first; return when it is off."""
        life = self.life(name)
        life.wanted = False
        self._watch.poke()
        await self._settle(self._with_dependents(name))
        return life

    def _know(self, source: Source) -> Life:
        if source.name in self._lives:
            raise ValueError(f"module {source.name} is known already")
        why = "" if source.enabled else "not enabled"
        life = self._lives[source.name] = Life(source, source.enabled, why=why)
        return life

    def _arrange(self) -> None:
        manifests = {name: life.source.manifest or _UNKNOWN for name, life in self._lives.items()}
        self._standing.order = Order(manifests)
        for life in self._lives.values():
            if life.wanted and not life.live and (why := self._standing.hopeless(life)):
                life.held = True
                self._enter(life, "failed", why)

    def _with_dependents(self, name: str) -> list[str]:
        return [name, *self._standing.order.above(name)]

    async def _settle(self, names: Iterable[str]) -> None:
        lives = [self._lives[name] for name in names]
        if self._started:
            await self._watch.until(lambda: self._standing.closing or all(map(self._standing.settled, lives)))

    def _start_keeper(self, life: Life) -> None:
        keeper = Keeper(life, self._make, self._standing, self._watch, self._patience, self._enter)
        self._keepers += 1
        self._tasks.start_soon(self._keep, keeper, name=f"keeper:{life.name}")

    async def _keep(self, keeper: Keeper) -> None:
        try:
            await keeper.keep()
        finally:
            self._keepers -= 1
            self._watch.poke()

    def _enter(self, life: Life, state: State, why: str) -> None:
        if (life.state, life.why) == (state, why):
            return
        life.state, life.why, life.since = state, why, time.time()
        self._watch.poke()
        if self._on_change is not None:
            try:
                self._on_change(life.name, state, why)
            except Exception:  # boundary: a listener must not end a module's keeper
                _log.exception("A listener failed when module %s was %s", life.name, state)
