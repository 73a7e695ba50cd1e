"""Keeps one module: starts it when its turn has come, stops it in time, starts it again after a failure."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from takeback.lives import Life, Make, Run, State
from takeback.patience import Patience, Watch
from takeback.standing import Standing

_log = logging.getLogger("takeback.keeper")
_CUTS = 2  # once a module may clean up when it is cancelled; not again


class Keeper:
    """The one task that decides over a module's life; `enter(life, state, why)` is told of each change."""

    def __init__(
        self,
        life: Life,
        make: Make,
        standing: Standing,
        watch: Watch,
        patience: Patience,
        enter: Callable[[Life, State, str], None],
    ) -> None:
        self._life = life
        self._make = make
        self._standing = standing
        self._watch = watch
        self._patience = patience
        self._enter = enter

    async def keep(self) -> None:
        """Keep the module until the supervisor closes, or this task is cancelled."""
        life = self._life
        try:
            while await self._turn():
                if await self._bring_up():
                    await self._watch.until(lambda: not life.up or self._standing.must_leave(life))
                await self._bring_down()
        finally:
            # Whoever cancels this task gets an orderly end as well: every wait in it has its limit.
            self._standing.closing = True
            with anyio.CancelScope(shield=True):
                await self._bring_down()

    async def _turn(self) -> bool:
        """Wait until the module may start; false when the supervisor closes."""

        def due() -> bool:
            self._explain()
            return self._standing.closing or self._standing.may_start(self._life)

        await self._watch.until(due)
        return not self._standing.closing

    def _explain(self) -> None:
        """Say why the module isn't running, while it isn't."""
        life, standing = self._life, self._standing
        if life.abandoned:
            return
        if standing.closing or not life.wanted:
            life.held = life.pausing = False
            if life.state != "off":
                self._enter(life, "off", "")
        elif not life.held and (why := standing.waits_for(life)):
            self._enter(life, "waiting", why)

    async def _bring_up(self) -> bool:
        life = self._life
        life.leaving = False
        run = life.run = Run(life.source, self._make, self._moved)
        self._enter(life, "starting", "")
        limit = self._patience.start
        if not await self._watch.until(
            lambda: run.phase != "starting" or self._standing.must_leave(life), limit
        ):
            run.error = f"not ready after {limit:g} s"
        if run.phase != "ready":
            return False
        life.ran = True
        life.well_since = self._patience.now()
        life.gate.open = True
        self._enter(life, "running", "")
        return True

    def _moved(self) -> None:
        if self._life.run is not None and self._life.run.phase in ("leaving", "ended"):
            self._life.gate.open = False
        self._watch.poke()

    async def _bring_down(self) -> None:
        life, run = self._life, self._life.run
        if run is None or not life.live:
            return
        life.leaving = True
        self._watch.poke()
        if run.phase == "ready":
            await self._watch.until(lambda: run.phase != "ready" or not self._standing.leaned_on(life))
        if run.phase != "ended":
            self._enter(life, "stopping", "")
            await self._part(run)
        if run.phase != "ended":
            life.held = True
            run.leave()  # should it come to itself, it finds that it is over
            self._enter(life, "failed", f"{run.error or 'did not stop'}; ignores its cancellation, abandoned")
            _log.error("Module %s was abandoned: only a restart of takeback ends its task", life.name)
        elif self._standing.closing or not life.wanted:
            self._enter(life, "off", run.error)
        elif lacking := self._standing.lacking(life):
            self._enter(life, "waiting", f"needs {', '.join(lacking)}")
        elif run.error:
            await self._fell(run.error)
        else:
            self._enter(life, "off", "")

    async def _part(self, run: Run) -> None:
        """Let the calls in flight end, then ask, then cancel, each within its limit."""
        gate = self._life.gate
        if run.phase == "ready":
            if not await gate.drain(self._patience.drain):
                _log.warning("Module %s stops with %d calls in flight", self._life.name, gate.inflight)
            run.leave()
        if run.phase != "starting":
            await self._watch.until(lambda: run.phase == "ended", self._patience.stop)
        for _ in range(_CUTS):
            if run.phase != "ended":
                run.cancel()
                await self._watch.until(lambda: run.phase == "ended", self._patience.cancel)

    async def _fell(self, why: str) -> None:
        """Say that the module failed, and wait until it may try again, if it ever may."""
        life, patience = self._life, self._patience
        if life.well_since is not None and patience.now() - life.well_since >= patience.well:
            life.restarts = 0
        life.well_since = None
        if not life.ran or life.restarts >= patience.restarts:
            life.held = True
            given_up = f"; given up after {life.restarts} restarts" if life.restarts else ""
            self._enter(life, "failed", why + given_up)
            return
        life.restarts += 1
        life.pausing = True
        self._enter(life, "failed", why)
        await self._watch.until(
            lambda: self._standing.closing or not life.wanted or not life.pausing,
            patience.pause(life.restarts),
        )
        life.pausing = False
