"""A tool call over loopback MCP, against the SDK's own server with no kernel behind it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import Figure, compare

_CALLS = 200

# The peer answers the same tool with the same schemas and the same token check, by the SDK alone.
_PEER = """
import contextlib, socket, sys
import uvicorn
from mcp.server import Server
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool
from pydantic import AnyHttpUrl
from benchmarks.calls import Asked, Told

class Tokens:
    async def verify_token(self, token):
        known = AccessToken(token="-", client_id="juno", scopes=["mcp"], subject="juno")
        return known if token == "secret" else None

async def on_list_tools(ctx, params):
    schema = Asked.model_json_schema()
    return ListToolsResult(tools=[Tool(name="bench.read", input_schema=schema)])

async def on_call_tool(ctx, params):
    told = Told(count=Asked.model_validate(params.arguments).count)
    text = TextContent(type="text", text=told.model_dump_json())
    return CallToolResult(content=[text], structured_content=told.model_dump(mode="json"))

schemas = {"bench.read": Asked.model_json_schema()}
server = Server("peer", on_list_tools=on_list_tools, on_call_tool=on_call_tool,
    get_tool_input_schema=schemas.get)
sock = socket.create_server(("127.0.0.1", 0))
port = sock.getsockname()[1]
auth = AuthSettings(issuer_url=AnyHttpUrl(f"http://127.0.0.1:{port}"), required_scopes=["mcp"],
    resource_server_url=AnyHttpUrl(f"http://127.0.0.1:{port}/mcp"), validate_token_resource=False)
app = server.streamable_http_app(token_verifier=Tokens(), auth=auth, json_response=True, stateless_http=True)
print(port, "secret", flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[sock])
"""
_OURS = """
import anyio, sys
from benchmarks.calls import ReadModule
from takeback import Kernel
from takeback_core.agents.module import AgentsModule
from takeback_core.audit.module import AuditModule
from takeback_doors.mcp.module import McpModule

async def main(home, root):
    modules = [ReadModule, AgentsModule, AuditModule, McpModule]
    async with Kernel(home, settings={"mcp": {"port": 0}}, modules=modules) as kernel:
        ctx = kernel.enter("cli:person")
        added = await ctx.agents.add(name="juno", roots=[root])
        url = (await ctx.mcp.status()).url
        print(url.split(":")[2].split("/")[0], added.token, flush=True)
        await anyio.sleep_forever()

import asyncio, uvloop
with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(main(*sys.argv[1:]))
"""


async def figures() -> list[Figure]:
    """One keep-alive client, calls one after another, both servers up."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "work"
        root.mkdir()
        with _serving(_OURS, f"{folder}/home", str(root)) as ours, _serving(_PEER) as peer:

            async def call_ours() -> float:
                return ours.timed(_CALLS)

            async def call_peer() -> float:
                return peer.timed(_CALLS)

            taken = await compare({"ours": call_ours, "peer": call_peer}, rounds=11)
    against = "SDK low-level server"
    return [Figure("a tool call over loopback MCP", taken["ours"], taken["peer"], against, 1.15)]


class _Client:
    """A bare HTTP/1.1 client on one kept connection."""

    def __init__(self, port: int, token: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = self._socket.makefile("rb")
        body = json.dumps(_request()).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: bench.read\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._bytes = head.encode() + body

    def timed(self, times: int) -> float:
        started = time.perf_counter()
        for _ in range(times):
            self._call()
        return (time.perf_counter() - started) / times

    def _call(self) -> None:
        self._socket.sendall(self._bytes)
        status = self._reader.readline()
        length, chunked = 0, False
        while (line := self._reader.readline()) != b"\r\n":
            if not line:
                raise RuntimeError("the server hung up")
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
            chunked = chunked or name.lower() == b"transfer-encoding"
        body = self._chunks() if chunked else self._reader.read(length)
        if b" 200 " not in status or b'"count":3' not in body.replace(b" ", b""):
            raise RuntimeError(f"{status!r} {body!r}")

    def _chunks(self) -> bytes:
        found = b""
        while size := int(self._reader.readline(), 16):
            found += self._reader.read(size)
            self._reader.readline()
        self._reader.readline()
        return found


def _request() -> dict[str, object]:
    client = {"name": "bench", "version": "1"}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": client,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    arguments = {"name": "a", "count": 3, "ratio": 0.5}
    params = {"name": "bench.read", "arguments": arguments, "_meta": meta}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


@contextmanager
def _serving(script: str, *arguments: str) -> Iterator[_Client]:
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            port, token = server.stdout.readline().split()
            yield _Client(int(port), token)
        finally:
            server.kill()
