"""A module's life: what is known of it, and one run of it in a task of its own."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import anyio
from anyio.abc import TaskGroup

from takeback.gate import Gate
from takeback.module import Module
from takeback.reasons import describe
from takeback.sources import Source

State = Literal["off", "starting", "running", "waiting", "failed", "stopping"]
Make = Callable[[Source], Module | Awaitable[Module]]
Phase = Literal["starting", "ready", "leaving", "ended"]

_log = logging.getLogger("takeback.lives")


@dataclass(slots=True, eq=False)
class Life:
    """One module as the supervisor knows it.

    `why` explains a `waiting` or `failed`, `since` is when the state was entered (seconds since the epoch),
    `restarts` how often it was started again after a failure. `gate` stays the same object for good.
    """

    source: Source
    wanted: bool
    gate: Gate = field(default_factory=Gate)
    state: State = "off"
    why: str = ""
    since: float = field(default_factory=time.time)
    restarts: int = 0
    run: Run | None = None
    leaving: bool = False  # on its way down, even if what sent it there has changed since
    held: bool = False  # failed for good, until somebody enables it again
    pausing: bool = False  # failed, and waits to be started again
    ran: bool = False  # has been running since it was last enabled
    well_since: float | None = None

    @property
    def name(self) -> str:
        """The module's name."""
        return self.source.name

    @property
    def module(self) -> Module | None:
        """The module itself while it is running."""
        return self.run.module if self.run and self.state == "running" else None

    @property
    def up(self) -> bool:
        """Whether it runs and nothing says that it will not go on."""
        return (
            self.state == "running"
            and not self.leaving
            and self.run is not None
            and self.run.phase == "ready"
        )

    @property
    def live(self) -> bool:
        """Whether there is something to stop."""
        return self.state in ("starting", "running", "stopping")

    @property
    def abandoned(self) -> bool:
        """Whether a run that would not leave is still about."""
        return not self.live and self.run is not None and self.run.phase != "ended"

    @property
    def shown(self) -> str:
        """The state with its reason: `failed (RuntimeError: no such port)`."""
        return f"{self.state} ({self.why})" if self.why else self.state


class Run:
    """One run of a module, from its making to its end, in a task that no task group waits for.

    A group would wait for ever for a module that swallows its cancellation. `error` says why the run ended,
    when nobody asked it to.
    """

    def __init__(self, source: Source, make: Make, changed: Callable[[], None]) -> None:
        self.module: Module | None = None
        self.phase: Phase = "starting"
        self.error = ""
        self._source = source
        self._make = make
        self._changed = changed
        self._stop = anyio.Event()
        self._cut = False
        self._task = asyncio.create_task(self._contain(), name=f"module:{source.name}")
        self._task.add_done_callback(lambda task: self._enter("ended"))

    def leave(self) -> None:
        """Ask the module to stop what it does and leave."""
        self._stop.set()

    def cancel(self) -> None:
        """Cancel the task once. A cancel scope would do it again at every turn of the loop, at full load."""
        self._cut = True
        self._task.cancel()

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self._changed()

    async def _contain(self) -> None:
        try:
            await self._live()
        except BaseException as exc:  # boundary: what a module raises must not reach its neighbours
            if _interrupted(exc):
                raise KeyboardInterrupt from exc
            if not (self._cut and isinstance(exc, asyncio.CancelledError)):
                self.error = describe(exc)
                _log.error("Module %s failed: %s", self._source.name, self.error, exc_info=exc)
        else:
            self.error = "" if self._stop.is_set() else "ended by itself"

    async def _live(self) -> None:
        made = self._make(self._source)
        self.module = await made if inspect.isawaitable(made) else made
        async with anyio.create_task_group() as group:
            async with self.module.life(cast(TaskGroup, Tasks(group, self._source.name))):
                self._enter("ready")
                try:
                    await self._stop.wait()
                finally:
                    self._enter("leaving")
            # Only now: tasks of its own may be needed by what the module does when it leaves.
            group.cancel_scope.cancel()


def _interrupted(exc: BaseException) -> bool:
    if isinstance(exc, BaseExceptionGroup):
        return exc.subgroup(KeyboardInterrupt) is not None
    return isinstance(exc, KeyboardInterrupt)


class Tasks:
    """The task group a module gets: a SystemExit in one of its tasks ends the module, not the program."""

    def __init__(self, group: TaskGroup, owner: str) -> None:
        self._group = group
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)

    def start_soon(
        self, func: Callable[..., Coroutine[Any, Any, Any]], *args: Any, name: object = None
    ) -> Any:
        """As anyio's."""
        return self._group.start_soon(_contained, func, args, {}, name=name or self._name(func))

    async def start(
        self, func: Callable[..., Coroutine[Any, Any, Any]], *args: Any, name: object = None, **options: Any
    ) -> Any:
        """As anyio's."""

        async def started(*, task_status: Any) -> Any:
            return await _contained(func, args, {"task_status": task_status})

        return await self._group.start(started, name=name or self._name(func), **options)

    def _name(self, func: Callable[..., Any]) -> str:
        return f"{self._owner}:{getattr(func, '__qualname__', func)}"


async def _contained(func: Callable[..., Coroutine[Any, Any, Any]], args: Any, kwargs: dict[str, Any]) -> Any:
    try:
        return await func(*args, **kwargs)
    except SystemExit as exc:  # asyncio would end the whole loop with it
        raise RuntimeError(f"a task of it called exit({exc.code!r})") from exc
