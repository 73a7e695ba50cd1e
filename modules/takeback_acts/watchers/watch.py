"""The watch: rounds of looking at the roots and carrying rules out, each begun by a hint or by the time."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence

import anyio
from anyio import to_thread
from anyio.abc import TaskStatus

from takeback import TakebackError
from takeback_acts.watchers import looking
from takeback_acts.watchers.arrivals import Mark
from takeback_acts.watchers.hearing import Hearing, hearing
from takeback_acts.watchers.looking import Ground
from takeback_acts.watchers.mover import Mover
from takeback_acts.watchers.names import shown
from takeback_acts.watchers.tally import Tally
from takeback_acts.watchers.watched import Trouble, Watched

_RETRY = 60.0


class Watch:
    """Watches roots until it is cancelled.

    Events only wake it: they can be lost, doubled or late, and a folder that is listed can't be misheard.
    `clock` is in seconds and only goes on.
    """

    def __init__(
        self,
        roots: Sequence[Watched],
        mover: Mover,
        log: logging.Logger,
        *,
        every: float,
        clock: Callable[[], float],
    ) -> None:
        self._roots = roots
        self._mover = mover
        self._log = log
        self._every = every
        self._clock = clock
        self._woken = anyio.Event()
        self.deaf = ""

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Watch; started when whatever appears from now on is noticed."""
        told: Callable[[], None] = task_status.started
        while True:
            ground = await self._ground()
            async with hearing([each.path for each in ground], self._woken_up) as heard:
                self._hears(heard.deaf)
                await self._look()
                told()
                await self._rounds(ground, heard)
            told = _nothing

    async def _rounds(self, ground: tuple[Ground, ...], heard: Hearing) -> None:
        """Rounds until there is something else to listen to, or another try at it is due."""
        while True:
            self._woken = anyio.Event()
            await self._look()
            await self._carry_out()
            if heard.lost or ground != await self._ground():
                return
            with anyio.move_on_after(self._pause()):
                await self._woken.wait()
                continue
            if heard.deaf:
                return

    def _woken_up(self) -> None:
        self._woken.set()

    async def _ground(self) -> tuple[Ground, ...]:
        return await to_thread.run_sync(looking.ground, [root.path for root in self._roots])

    async def _look(self) -> None:
        for root in self._roots:
            found = await to_thread.run_sync(looking.files, root.path, root.concerns)
            root.take_in(found, self._clock())

    async def _carry_out(self) -> None:
        tally = Tally()
        try:
            for root in self._roots:
                for name, mark in root.arrivals.complete(self._clock()):
                    await self._take(root, name, mark, tally)
        finally:
            tally.tell(self._log)

    async def _take(self, root: Watched, name: str, mark: Mark, tally: Tally) -> None:
        path = os.path.join(root.path, name)
        if await to_thread.run_sync(looking.file_mark, path) != mark:
            return  # it changed while others were carried; the next look sees how
        rule = root.rule_of(name)
        try:
            moved = await self._mover.take(rule, name, mark)
        except TakebackError as error:
            if await to_thread.run_sync(looking.file_mark, path) == mark:
                root.fail(name, Trouble(rule.name, mark, error), self._clock() + _RETRY)
                tally.left(rule, error)
            return
        if moved:
            root.forget(name)
            tally.moved(rule)
        else:
            root.leave(name, mark)
            tally.came_back(rule)

    def _pause(self) -> float:
        due = [when for root in self._roots if (when := root.arrivals.next_due()) is not None]
        return min([self._every, *(max(0.0, when - self._clock()) for when in due)])

    def _hears(self, why: str) -> None:
        if why and why != self.deaf:
            self._log.warning(
                "The system does not tell of changes (%s): folders are looked at every %g s",
                shown(why),
                self._every,
            )
        self.deaf = why


def _nothing() -> None:
    return None
