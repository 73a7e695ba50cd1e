"""What a module is, and what the kernel hands it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import anyio
from anyio.abc import TaskGroup
from pydantic import BaseModel

from takeback.callers import Caller
from takeback.context import Context, Scope
from takeback.errors import RefusedError, TakebackError
from takeback.tools import ToolSpec, collect

if TYPE_CHECKING:
    from takeback.events import Events
    from takeback.home import Home
    from takeback.kernel import Kernel
    from takeback.manifest import Manifest
    from takeback.reach import Decision
    from takeback.rewinding import Rewound
    from takeback.router import CallRecord, Router
    from takeback.store import Store, Transaction


@dataclass(frozen=True, slots=True)
class Check:
    """One line of `takeback doctor`: what was looked at, whether it is well, and what to do if not."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


class Doorway:
    """What a door gets: it makes labels under its own name, and calls with one timer a call."""

    def __init__(self, router: Router, door: str) -> None:
        self._router = router
        self._door = door

    def agent(
        self, name: str, *, session: str | None = None, turn: str | None = None, scope: Scope | None = None
    ) -> Context:
        """A context for an agent that the door has recognised; without a scope it may touch nothing."""
        caller = Caller.agent(self._door, name)
        return self._router.root(caller, session=session, turn=turn, scope=scope or Scope())

    def person(
        self,
        device: str | None = None,
        *,
        present: bool = False,
        session: str | None = None,
        turn: str | None = None,
        dry_run: bool = False,
    ) -> Context:
        """A context for the person; `present` only when the door has just seen them confirm."""
        caller = Caller.person(self._door, device)
        return self._router.root(caller, session=session, turn=turn, dry_run=dry_run, present=present)

    async def call(self, ctx: Context, tool: str, args: Any = None, *, timeout: float | None = None) -> Any:
        """Call a tool within `timeout` seconds; raises TakebackError `call.deadline` when they are over."""
        return await call_within(ctx, tool, args, timeout)


async def call_within(ctx: Context, tool: str, args: Any, timeout: float | None) -> Any:
    """Call a tool with one timer that nested calls share."""
    if timeout is None:
        return await ctx.call(tool, args)
    with anyio.move_on_after(timeout) as limit:
        return await ctx._replace(deadline=limit.deadline).call(tool, args)
    raise TakebackError(
        "call.deadline",
        f"{tool} did not finish within {timeout:g} s and was cancelled",
        "What it had not committed was rolled back. Try again, or raise the time limit.",
        retryable=True,
    )


@dataclass(frozen=True)
class Host:
    """The kernel as one module sees it.

    `ctx` starts chains under the module's own label, for what it does by itself. `rewound(tx, what)` has
    every module clear what it derived from a past that is being changed. `door` is there only for a
    built-in module whose manifest says it is one; `kernel` only for the kernel's own console.
    """

    name: str
    manifest: Manifest
    settings: Any
    store: Store
    events: Events
    home: Home
    tools: Router
    ctx: Context
    rewound: Callable[[Transaction, Rewound], None]
    door: Doorway | None = None
    kernel: Kernel | None = None
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("takeback"))

    def explain(self, label: str, tool: str) -> Decision:
        """The decision on a call, with its reason."""
        return self.tools.explain(label, tool)

    def on_call(self, sink: Callable[[CallRecord], object]) -> Callable[[], None]:
        """Hear of every routed call; answers how to stop."""
        return self.tools.on_call(sink)

    def doorway(self) -> Doorway:
        """The way in of a door; raises RefusedError `module.no_door` for other modules."""
        if self.door is None:
            raise RefusedError(
                "module.no_door",
                f"Module {self.name} is no door, so it may not make labels for callers",
                "Only a built-in module with `door = true` in its manifest may.",
            )
        return self.door


class Module:
    """Base of every module: tools are its methods marked with `@tool`, its life is `life`.

    `migrations` are SQL scripts for the module's own tables, numbered from 1 by their position and never
    changed once released. PERSON_ONLY and HUMAN_ONLY name verbs that are for the person alone.
    """

    manifest: ClassVar[Manifest]
    Settings: ClassVar[type[BaseModel] | None] = None
    migrations: ClassVar[tuple[str, ...]] = ()
    PERSON_ONLY: ClassVar[frozenset[str]] = frozenset()
    HUMAN_ONLY: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, host: Host) -> None:
        self.host = host

    @property
    def name(self) -> str:
        """The module's name, and the first half of its tools' names."""
        return self.host.name

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools that the module declares; raises TakebackError `tool.declaration`."""
        return collect(type(self), self.name)

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        """The module's whole life: start before the yield, stop after it; `tasks` end with it."""
        yield

    async def neighbours_changed(self) -> None:
        """Called when all modules have been started, and after each later change of any module's state."""

    def on_rewind(self, tx: Transaction, rewound: Rewound) -> None:
        """Clear, through `tx`, what the module derived from turns of a session that are no more as they were.

        Called inside the transaction that changes the log, on the writer's thread, and before that in one
        that is rolled back: what it raises then refuses the rewind, with everything as before.
        """

    def amend(self, tx: Transaction, rewound: Rewound) -> Rewound:
        """Say what else is known of a rewind that this module asked for, before anybody hears of it.

        Called in the same transactions as `on_rewind`, which all modules then get with what this answers.
        """
        return rewound

    async def checks(self) -> list[Check]:
        """What `takeback doctor` should know of this module."""
        return []
