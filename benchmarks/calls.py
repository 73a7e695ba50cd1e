"""The path of a call: `ctx.call` against the least that could do it, and against the SDK's own server."""

from __future__ import annotations

import tempfile
from contextvars import ContextVar
from typing import Any, ClassVar

from mcp import Client
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel, ConfigDict

from benchmarks.measure import Figure, compare, per_call
from takeback import Context, Kernel, Manifest, Module, tool
from takeback_core.audit.module import AuditModule

_ARGUMENTS = {"name": "a", "count": 3, "ratio": 0.5}
_CALLS = 5_000


class Asked(BaseModel):
    """Three fields."""

    model_config = ConfigDict(extra="forbid")
    name: str
    count: int
    ratio: float


class Told(BaseModel):
    """One field."""

    count: int


class ReadModule(Module):
    """One tool that reads."""

    manifest: ClassVar[Manifest] = Manifest(1, "bench", "One tool that reads.")

    @tool(effect="read", reach=("person", "agents", "modules"))
    async def read(self, ctx: Context, args: Asked) -> Told:
        """Tell the count."""
        return Told(count=args.count)


_CURRENT: ContextVar[Any] = ContextVar("current")


class _Call:
    __slots__ = ("caller", "name")

    def __init__(self, name: str, caller: str) -> None:
        self.name = name
        self.caller = caller


class _Floor:
    """A dict of 200 tools, a set of labels, a validator and a context variable: the least there is."""

    def __init__(self) -> None:
        validate = Asked.__pydantic_validator__.validate_python
        reach = frozenset({"mcp:agent:juno", "cli:person"})
        self._tools = {f"bench.read{number}": (validate, reach, self._read) for number in range(200)}

    async def _read(self, args: Asked) -> Told:
        return Told(count=args.count)

    async def call(self, name: str, caller: str, args: dict[str, Any]) -> Told:
        validate, reach, run = self._tools[name]
        if caller not in reach:
            raise PermissionError(name)
        token = _CURRENT.set(_Call(name, caller))
        try:
            return await run(validate(args))
        finally:
            _CURRENT.reset(token)


async def figures() -> list[Figure]:
    """`ctx.call` of a read tool, audit running, against the floor and the SDK's in-memory client."""
    server = MCPServer("peer")

    @server.tool()
    async def read(name: str, count: int, ratio: float) -> int:
        return count

    floor = _Floor()
    with tempfile.TemporaryDirectory() as home:
        async with (
            Kernel(home, settings={}, modules=[ReadModule, AuditModule]) as kernel,
            Client(server) as sdk,
        ):
            ctx = kernel.enter("mcp:agent:juno")
            taken = await compare(
                {
                    "floor": lambda: per_call(
                        lambda: floor.call("bench.read7", "mcp:agent:juno", _ARGUMENTS), _CALLS
                    ),
                    "ours": lambda: per_call(lambda: ctx.call("bench.read", _ARGUMENTS), _CALLS),
                    "sdk": lambda: per_call(lambda: sdk.call_tool("read", _ARGUMENTS), 100),
                },
                rounds=9,
            )
    return [
        Figure("ctx.call of a read tool", taken["ours"], taken["floor"], "lean floor", 3.0),
        Figure("ctx.call of a read tool", taken["ours"], taken["sdk"], "SDK in memory", 50.0, at_least=True),
    ]
