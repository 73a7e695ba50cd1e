"""Neighbours: every running module is told when others came or went, and waits for nobody meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import anyio
from anyio.abc import TaskGroup

from takeback.lives import Life
from takeback.module import Module
from takeback.outline import outline

_log = logging.getLogger("takeback.kernel")


class Neighbours:
    """Calls `neighbours_changed` of running modules, each in a task of its own.

    Changes that come while a module is still busy with one are told to it once, afterwards.
    """

    def __init__(self, tasks: TaskGroup, lives: Mapping[str, Life]) -> None:
        self._tasks = tasks
        self._lives = lives
        self._due: set[Module] = set()
        self._busy: set[Module] = set()
        self._quiet = anyio.Event()

    def stir(self) -> None:
        """Say that some module's state has changed."""
        for life in self._lives.values():
            if life.module is not None:
                self._due.add(life.module)
                self._start(life.module)

    async def told(self, seconds: float) -> None:
        """Return when everybody has taken in what was said so far, or after so many seconds."""
        with anyio.move_on_after(seconds):
            while self._busy:
                self._quiet = anyio.Event()
                await self._quiet.wait()

    def _start(self, module: Module) -> None:
        if module not in self._busy:
            self._busy.add(module)
            self._tasks.start_soon(self._tell, module, name=f"neighbours of {module.name}")

    async def _tell(self, module: Module) -> None:
        try:
            while module in self._due:
                self._due.discard(module)
                if self._lives[module.name].module is module:  # it may have stopped meanwhile
                    await _change(module)
        finally:
            self._busy.discard(module)
            self._quiet.set()


async def _change(module: Module) -> None:
    try:
        await module.neighbours_changed()
    except (Exception, SystemExit) as error:  # boundary: one module's trouble is not its neighbours'
        _log.error("Module %s could not take a change in: %s", module.name, outline(error))
