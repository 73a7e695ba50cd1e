"""A small house to knock at: a module with tools of every reach, and ways to come in."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import BaseModel, ConfigDict

from takeback import ConflictError, Context, Kernel, Manifest, Module, tool
from takeback_core.agents.module import AgentsModule
from takeback_core.audit.module import AuditModule
from takeback_doors.mcp.module import McpModule

MODERN = "2026-07-28"
LEGACY = "2025-11-25"


class Nothing(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Note(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str


class Names(BaseModel):
    names: list[str]


class Measure(BaseModel):
    value: float | None


class Done(BaseModel):
    name: str
    existed: bool


class Where(BaseModel):
    caller: str
    origin: str
    session: str | None
    turn: str | None
    roots: list[str]
    present: bool


class NotesModule(Module):
    """Tools of every reach, and every way of going wrong."""

    manifest: ClassVar[Manifest] = Manifest(api=1, name="notes", summary="Notes for tests.")
    latest: ClassVar[NotesModule]

    def __init__(self, host):
        super().__init__(host)
        self.names = {"milk"}
        self.started = anyio.Event()
        self.cancelled = anyio.Event()
        self.go = anyio.Event()
        type(self).latest = self

    @tool(effect="read", reach=("agents", "person", "modules"), name="list")
    async def list_notes(self, ctx: Context, args: Nothing) -> Names:
        """List the notes."""
        return Names(names=sorted(self.names))

    @tool(effect="write", reach=("agents", "person"), destructive=True, idempotent=True)
    async def delete(self, ctx: Context, args: Note) -> Done:
        """Delete a note."""
        existed = args.name in self.names
        self.names.discard(args.name)
        return Done(name=args.name, existed=existed)

    @tool(effect="write", reach=("agents",), outward=True)
    async def send(self, ctx: Context, args: Note) -> Done:
        """Send a note to somebody."""
        return Done(name=args.name, existed=True)

    @tool(effect="write", reach=("person",), person_only=True)
    async def shred(self, ctx: Context, args: Nothing) -> Names:
        """Delete every note."""
        self.names.clear()
        return Names(names=[])

    @tool(effect="write", reach=("modules",))
    async def plumb(self, ctx: Context, args: Nothing) -> Names:
        """Do what only modules may."""
        return Names(names=[])

    @tool(effect="read", reach=("agents",))
    async def where(self, ctx: Context, args: Nothing) -> Where:
        """Tell who calls, and from where."""
        roots = list(ctx.scope.roots) if ctx.scope else ["no limits"]
        return Where(
            caller=ctx.caller,
            origin=ctx.origin,
            session=ctx.session,
            turn=ctx.turn,
            roots=roots,
            present=ctx.present,
        )

    @tool(effect="write", reach=("agents",))
    async def clash(self, ctx: Context, args: Note) -> Done:
        """Meet a conflict."""
        raise ConflictError(
            "notes.clash", f"{args.name} changed since", "Read it again.", retryable=True, data={"now": "v2"}
        )

    @tool(effect="write", reach=("agents",))
    async def crash(self, ctx: Context, args: Note) -> Done:
        """Fail in an unforeseen way."""
        raise KeyError(f"secret of {args.name}")

    @tool(effect="write", reach=("agents",))
    async def slow(self, ctx: Context, args: Nothing) -> Names:
        """Wait until told."""
        self.started.set()
        try:
            await self.go.wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled.set()
            raise
        return Names(names=["waited"])


class OddModule(Module):
    """Answers that are hard to say in JSON."""

    manifest: ClassVar[Manifest] = Manifest(api=1, name="odd", summary="Odd answers for tests.")

    @tool(effect="read", reach=("agents",))
    async def number(self, ctx: Context, args: Nothing) -> Measure:
        """Answer a number that JSON has not."""
        return Measure(value=float("nan"))

    @tool(effect="read", reach=("agents",))
    async def text(self, ctx: Context, args: Nothing) -> Names:
        """Answer a text that UTF-8 has not."""
        return Names.model_construct(names=["secret\udcff"])


class DeputyModule(Module):
    """A module that an agent could try to borrow reach from."""

    manifest: ClassVar[Manifest] = Manifest(
        api=1, name="deputy", summary="A deputy for tests.", calls=("notes.*",)
    )

    @tool(effect="write", reach=("agents",))
    async def lend(self, ctx: Context, args: Note) -> Done:
        """Call a tool on somebody's behalf."""
        await ctx.call(args.name)
        return Done(name=args.name, existed=True)


class House:
    """A running kernel with the door open."""

    def __init__(self, kernel: Kernel, url: str, socket: str) -> None:
        self.kernel = kernel
        self.url = url
        self.socket = socket
        self.person = kernel.enter("cli:person", present=True)

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1].split("/")[0])

    async def token(self, name: str, **more: Any) -> str:
        added = await self.person.call("agents.add", {"name": name, **more})
        return str(added.token)

    async def closing(self) -> None:
        """Return once the door's stop has begun."""
        with anyio.fail_after(5):
            while self.kernel.tools.get("mcp.status") is not None:
                await anyio.wait_all_tasks_blocked()

    async def call_and_be_cut(self, token: str, tool: str) -> None:
        """Make a call whose answer never comes."""
        with contextlib.suppress(httpx2.TransportError):
            await self.post(token, request("tools/call", tool, {}), **routing(tool))

    async def switch_off(self, module: str) -> None:
        await self.person.call("kernel.disable", {"name": module})

    @asynccontextmanager
    async def client(self, token: str, mode: str = "auto", **more: Any) -> AsyncIterator[Client]:
        async with (
            http(token) as inner,
            Client(streamable_http_client(self.url, http_client=inner), mode=mode, **more) as client,
        ):
            yield client

    async def post(self, token: str | None, body: Any, **headers: str) -> httpx2.Response:
        """One raw POST, as a modern client sends it."""
        head = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if token is not None:
            head["Authorization"] = f"Bearer {token}"
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with httpx2.AsyncClient(timeout=10) as client:
            return await client.post(
                self.url,
                content=content,
                headers={**head, **{k.replace("_", "-"): v for k, v in headers.items()}},
            )

    async def call(self, token: str, tool: str, arguments: dict[str, Any], **meta: Any) -> dict[str, Any]:
        """One raw modern `tools/call`; the whole JSON-RPC answer."""
        response = await self.post(token, request("tools/call", tool, arguments, **meta), **routing(tool))
        return dict(response.json())

    async def raw(self, data: bytes) -> bytes:
        """What the door answers to these very bytes, up to the end of the first response's head and body."""
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            await stream.send(data)
            received = b""
            with anyio.fail_after(10):
                while b"\r\n\r\n" not in received:
                    received += await stream.receive()
            return received


@asynccontextmanager
async def house(home: Any, *modules: Any, rules: Any = (), **settings: Any) -> AsyncIterator[House]:
    """The door open over a home, under the person's `rules`; other keywords are settings of the door."""
    base = [AgentsModule, AuditModule, McpModule, NotesModule, DeputyModule]
    sections = {"mcp": {"port": 0, **settings}, "kernel": {"rules": list(rules)}}
    async with Kernel(home, settings=sections, modules=[*base, *modules]) as kernel:
        status = await kernel.enter("cli:person").call("mcp.status")
        yield House(kernel, status.url, status.socket)


def http(token: str, **headers: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}", **headers}, timeout=10)


def request(method: str, tool: str, arguments: dict[str, Any], **meta: Any) -> dict[str, Any]:
    """A modern JSON-RPC request with its envelope."""
    envelope = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
        **meta,
    }
    params: dict[str, Any] = {"_meta": envelope}
    if method == "tools/call":
        params |= {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def routing(tool: str) -> dict[str, str]:
    """The headers that repeat a modern call's method and tool."""
    return {"MCP_Protocol_Version": MODERN, "Mcp_Method": "tools/call", "Mcp_Name": tool}
