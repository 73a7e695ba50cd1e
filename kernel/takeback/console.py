"""The kernel's own tools: its modules, its tools, its rules and its health, for the person."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import anyio
from pydantic import BaseModel, ConfigDict, StringConstraints

import takeback
from takeback.manifest import API, Manifest
from takeback.module import Check, Host, Module
from takeback.moments import stamp
from takeback.reasons import describe
from takeback.tools import tool

# At run time too: a tool's annotations are read when it is registered.
from takeback.context import Context  # isort: skip

if TYPE_CHECKING:
    from takeback.kernel import Kernel
    from takeback.lives import Life

# A module that hangs over its checks is a finding as well.
_CHECK_SECONDS = 20.0

Label = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Nothing(_In):
    """No arguments."""


class ModuleName(_In):
    """One module."""

    name: Label


class ToolsFor(_In):
    """Whose tools; without a caller, all that run."""

    caller: Label | None = None


class Reach(_In):
    """One caller and one tool."""

    caller: Label
    tool: Label


class Status(BaseModel):
    """The daemon at a glance; `started` is ISO 8601 in UTC, `memory_kib` what the process holds."""

    version: str
    pid: int
    started: str
    home: str
    modules: dict[str, int]
    memory_kib: int | None


class ModuleShown(BaseModel):
    """One module and why it is as it is."""

    name: str
    state: str
    why: str
    builtin: bool
    trusted: bool
    distribution: str
    summary: str
    since: str
    restarts: int


class Modules(BaseModel):
    """Every module known, and what discovery refused."""

    modules: list[ModuleShown]
    problems: list[str]


class ToolShown(BaseModel):
    """One tool as it was declared."""

    name: str
    module: str
    summary: str
    effect: str
    reach: list[str]
    outward: bool
    presence: bool
    person_only: bool
    previews: bool
    input_schema: dict[str, Any]


class ToolsShown(BaseModel):
    """Tools, sorted by name."""

    tools: list[ToolShown]


class Explained(BaseModel):
    """The decision on a call, the reason, and the rule that made it."""

    allowed: bool
    reason: str
    rule: str


class CheckShown(BaseModel):
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    hint: str


class Checked(BaseModel):
    """The kernel's health."""

    checks: list[CheckShown]


class ConsoleModule(Module):
    """The pseudo module `kernel`; it alone holds the kernel."""

    manifest: ClassVar[Manifest] = Manifest(
        API, "kernel", "The kernel itself: modules, tools, rules, health."
    )

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._started = time.time()

    @property
    def _kernel(self) -> Kernel:
        assert self.host.kernel is not None, "the console is made with the kernel"
        return self.host.kernel

    @tool(effect="read", reach=("person",))
    async def status(self, ctx: Context, args: Nothing) -> Status:
        """Show the daemon at a glance."""
        counts: dict[str, int] = {}
        for life in self._kernel.supervisor.lives.values():
            counts[life.state] = counts.get(life.state, 0) + 1
        return Status(
            version=takeback.__version__,
            pid=os.getpid(),
            started=stamp(self._started),
            home=str(self.host.home.data),
            modules=counts,
            memory_kib=_memory_kib(),
        )

    @tool(effect="read", reach=("person",))
    async def modules(self, ctx: Context, args: Nothing) -> Modules:
        """List the modules, their states and why."""
        lives = self._kernel.supervisor.lives.values()
        problems = [f"{one.name}: {one.reason}" for one in self._kernel.problems]
        return Modules(modules=[self._shown(life) for life in lives], problems=problems)

    @tool(effect="write", reach=("person",), person_only=True, presence=True, previews=True, idempotent=True)
    async def enable(self, ctx: Context, args: ModuleName) -> ModuleShown:
        """Switch a module on, now and at every start; a rehearsal shows it as it is."""
        life = self._kernel.switchable(args.name)
        if not ctx.dry_run:
            await self._kernel.set_enabled(args.name, True)
        return self._shown(life)

    @tool(effect="write", reach=("person",), person_only=True, presence=True, previews=True, idempotent=True)
    async def disable(self, ctx: Context, args: ModuleName) -> ModuleShown:
        """Switch a module off, now and at every start; calls in flight are let finish."""
        life = self._kernel.switchable(args.name)
        if not ctx.dry_run:
            await self._kernel.set_enabled(args.name, False)
        return self._shown(life)

    @tool(effect="write", reach=("person",), person_only=True, presence=True, previews=True, idempotent=True)
    async def trust(self, ctx: Context, args: ModuleName) -> ModuleShown:
        """Let an added module see tools of reach modules."""
        life = self._kernel.trustable(args.name)
        if not ctx.dry_run:
            await self._kernel.set_trust(args.name, True)
        return self._shown(life)

    @tool(effect="write", reach=("person",), person_only=True, idempotent=True)
    async def untrust(self, ctx: Context, args: ModuleName) -> ModuleShown:
        """Take the trust in an added module back."""
        await self._kernel.set_trust(args.name, False)
        return self._shown(self._kernel.supervisor.lives[args.name])

    @tool(effect="read", reach=("person",), name="tools")
    async def list_tools(self, ctx: Context, args: ToolsFor) -> ToolsShown:
        """List the running tools, or those that a caller reaches."""
        router = self.host.tools
        specs = router.specs() if args.caller is None else router.reachable(args.caller)
        return ToolsShown(
            tools=[
                ToolShown(
                    name=spec.name,
                    module=spec.module,
                    summary=spec.summary,
                    effect=spec.effect,
                    reach=sorted(spec.reach),
                    outward=spec.outward,
                    presence=spec.presence,
                    person_only=spec.person_only,
                    previews=spec.previews,
                    input_schema=spec.input_schema(),
                )
                for spec in specs
            ]
        )

    @tool(effect="read", reach=("person",))
    async def reach(self, ctx: Context, args: Reach) -> Explained:
        """Explain whether a caller may call a tool, and which rule decides."""
        decision = self.host.explain(args.caller, args.tool)
        return Explained(allowed=decision.allowed, reason=decision.reason, rule=decision.rule)

    @tool(effect="read", reach=("person",))
    async def doctor(self, ctx: Context, args: Nothing) -> Checked:
        """Look at the health of the store and of every module."""
        found = [await self._store_check(), self._problems_check()]
        for life in self._kernel.supervisor.lives.values():
            found.append(_life_check(life))
            found += await _own_checks(life)
        return Checked(checks=[CheckShown(name=c.name, ok=c.ok, detail=c.detail, hint=c.hint) for c in found])

    async def _store_check(self) -> Check:
        wrong = await self.host.store.check()
        hint = "Stop the daemon and copy the data folder before anything else." if wrong else ""
        return Check("database", not wrong, "; ".join(wrong[:3]) or "sound", hint)

    def _problems_check(self) -> Check:
        told = "; ".join(f"{one.name}: {one.reason}" for one in self._kernel.problems)
        return Check("modules and settings", not told, told or "nothing left out")

    def _shown(self, life: Life) -> ModuleShown:
        source = life.source
        return ModuleShown(
            name=life.name,
            state=life.state,
            why=life.why,
            builtin=source.builtin,
            trusted=source.builtin or self._kernel.trust.trusts(life.name, source.distribution),
            distribution=source.distribution,
            summary=source.manifest.summary if source.manifest else "",
            since=stamp(life.since),
            restarts=life.restarts,
        )


def _life_check(life: Life) -> Check:
    well = life.state in ("running", "off")
    return Check(
        f"module {life.name}", well, life.shown, "" if well else "`takeback modules` shows all of them."
    )


async def _own_checks(life: Life) -> list[Check]:
    if life.module is None:
        return []
    try:
        with anyio.fail_after(_CHECK_SECONDS):
            return await life.module.checks()
    except (
        Exception,
        SystemExit,
    ) as error:  # boundary: a check that fails is a finding, not the end of the examination
        return [Check(f"checks of {life.name}", False, describe(error), "This is a fault in the module.")]


def _memory_kib() -> int | None:
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    except (OSError, ValueError):
        return None
