"""`takeback mcp`: the bridge between a client's pipes and the daemon's socket."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp.types import ToolListChangedNotification, ToolsCapability

from tests.mcp.house import NotesModule, house, request

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("mode", ["auto", "legacy"])

CODE = """
import os, sys
from takeback_doors.mcp.bridge import main
sys.exit(main(os.environ["SOCK"], os.environ["TOK"]))
"""


def bridge(door, token):
    env = {**os.environ, "SOCK": door.socket, "TOK": token}
    return StdioServerParameters(command=sys.executable, args=["-c", CODE], env=env)


async def start(path, token):
    """The bridge as a process of its own, its pipes in our hands."""
    env = {**os.environ, "SOCK": path, "TOK": token}
    return await anyio.open_process([sys.executable, "-c", CODE], env=env, stderr=subprocess.PIPE)


async def ended(process):
    """Its exit code and what it said on standard error."""
    with anyio.fail_after(10):
        said = b"".join([chunk async for chunk in process.stderr])
        code = await process.wait()
    await process.aclose()
    return code, said.decode()


@both
async def test_a_client_over_the_bridge(door, mode):
    token = await door.token("juno")
    async with Client(bridge(door, token), mode=mode) as client:
        assert client.server_capabilities.tools == ToolsCapability(list_changed=True)
        assert "notes.delete" in [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("notes.where", {})
        assert result.structured_content["caller"] == "mcp:agent:juno"
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("notes.shred", {})
        assert (await client.call_tool("notes.clash", {"name": "milk"})).is_error
        assert (await door.person.call("mcp.status")).bridges == 1


async def test_changed_tools_are_told_over_the_bridge_modern(door):
    token = await door.token("juno")
    async with Client(bridge(door, token)) as client, client.listen(tools_list_changed=True) as stream:
        await door.person.call("kernel.disable", {"name": "notes"})
        with anyio.fail_after(5):
            await anext(stream)


async def test_changed_tools_are_told_over_the_bridge_handshake(door):
    token = await door.token("juno")
    told = anyio.Event()

    async def heard(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            told.set()

    async with Client(bridge(door, token), mode="legacy", message_handler=heard) as client:
        await client.list_tools()
        await door.person.call("kernel.disable", {"name": "notes"})
        with anyio.fail_after(5):
            await told.wait()


@both
async def test_a_cancel_over_the_bridge_reaches_the_tool(door, mode):
    token = await door.token("juno")
    async with Client(bridge(door, token), mode=mode) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "notes.slow", {})
            with anyio.fail_after(5):
                await NotesModule.latest.started.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(5):
            await NotesModule.latest.cancelled.wait()


async def test_the_bridge_leaves_when_its_client_does(door):
    process = await start(door.socket, await door.token("juno"))
    await process.stdin.send(json.dumps(request("tools/call", "notes.list", {})).encode() + b"\n")
    with anyio.fail_after(5):
        answer = json.loads(await process.stdout.receive())
    assert answer["result"]["structuredContent"] == {"names": ["milk"]}
    await process.stdin.aclose()
    assert await ended(process) == (0, "")
    with anyio.fail_after(5):
        while (await door.person.call("mcp.status")).bridges:
            await anyio.wait_all_tasks_blocked()


async def test_the_bridge_leaves_when_the_daemon_does(door):
    process = await start(door.socket, await door.token("juno"))
    await process.stdin.send(json.dumps(request("tools/call", "notes.list", {})).encode() + b"\n")
    await process.stdout.receive()
    await door.person.call("kernel.disable", {"name": "mcp"})
    assert await ended(process) == (1, "takeback mcp: the daemon closed the connection\n")


async def test_20_a_revoked_agents_bridge_is_closed(door):
    process = await start(door.socket, await door.token("juno"))
    await process.stdin.send(json.dumps(request("tools/call", "notes.list", {})).encode() + b"\n")
    await process.stdout.receive()
    await door.person.call("agents.revoke", {"name": "juno"})
    code, said = await ended(process)
    assert code == 1
    assert "closed" in said


async def test_a_token_that_is_not_accepted(door):
    process = await start(door.socket, "tb_wrong")
    code, said = await ended(process)
    assert code == 4
    assert said.startswith("takeback mcp: The token is not accepted.")
    assert said.count("\n") == 1
    assert "tb_wrong" not in said


async def test_no_daemon(tmp_path):
    process = await start(str(tmp_path / "none.sock"), "tb_x")
    code, said = await ended(process)
    assert code == 1
    assert "no daemon answers" in said
    assert said.count("\n") == 1


async def test_an_interrupt_ends_the_bridge(door):
    process = await start(door.socket, await door.token("juno"))
    await process.stdin.send(json.dumps(request("tools/call", "notes.list", {})).encode() + b"\n")
    await process.stdout.receive()
    process.send_signal(signal.SIGINT)
    assert await ended(process) == (130, "")


@pytest.mark.parametrize(
    "line", [b"hello\n", b"[]\n", b"{}\n", b'{"token": 1}\n', b"[" * 3000 + b"\n", b"x" * 5000, b"\xff\n"]
)
async def test_a_malformed_greeting(door, line):
    async with await anyio.connect_unix(door.socket) as stream:
        await stream.send(line)
        with anyio.fail_after(5):
            answer = json.loads(await stream.receive())
            assert answer["ok"] is False
            assert answer["error"]["code"] == "mcp.greeting"
            with pytest.raises(anyio.EndOfStream):
                await stream.receive()


async def test_garbage_after_the_greeting_harms_nobody(door):
    token = await door.token("juno")
    async with await anyio.connect_unix(door.socket) as stream:
        await stream.send(json.dumps({"token": token}).encode() + b"\n")
        with anyio.fail_after(5):
            assert json.loads(await stream.receive()) == {"ok": True}
            await stream.send(b"\xff\xfe garbage\n[]\n{}\n")
            await stream.send(json.dumps(request("tools/call", "notes.list", {})).encode() + b"\n")
            received = b""
            while b"structuredContent" not in received:
                received += await stream.receive()


async def test_a_message_over_the_limit_ends_the_line(home):
    async with house(home, body_limit=1024) as door:
        token = await door.token("juno")
        async with await anyio.connect_unix(door.socket) as stream:
            await stream.send(json.dumps({"token": token}).encode() + b"\n")
            with anyio.fail_after(5):
                assert json.loads(await stream.receive()) == {"ok": True}
                await stream.send(b"x" * 5000)
                with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                    await stream.receive()


async def test_50_the_socket_is_the_persons_alone(home):
    before = os.umask(0)
    try:
        async with house(home) as door:
            assert stat.S_IMODE(os.stat(door.socket).st_mode) == 0o600
            assert stat.S_IMODE(os.stat(os.path.dirname(door.socket)).st_mode) == 0o700
    finally:
        os.umask(before)
    assert not os.path.exists(door.socket)


async def test_50_another_users_process_is_refused(door, monkeypatch):
    token = await door.token("juno")
    monkeypatch.setattr("takeback_doors.mcp.pipe.peer_uid", lambda connection: os.geteuid() + 1)
    async with await anyio.connect_unix(door.socket) as stream:
        await stream.send(json.dumps({"token": token}).encode() + b"\n")
        with anyio.fail_after(5):
            assert json.loads(await stream.receive())["error"]["code"] == "mcp.peer"


def test_50_the_system_tells_whose_process_connected():
    from takeback.peer import peer_uid

    one, other = socket.socketpair()
    with one, other:
        assert peer_uid(one) == os.geteuid()


def test_the_bridge_imports_no_library():
    code = (
        "import sys; import takeback_doors.mcp.bridge as b; "
        "print(sorted(m for m in ('pydantic', 'anyio', 'mcp', 'takeback.kernel') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_a_stop_lets_a_call_over_the_bridge_end(door):
    process = await start(door.socket, await door.token("juno"))
    await process.stdin.send(json.dumps(request("tools/call", "notes.slow", {})).encode() + b"\n")
    with anyio.fail_after(5):
        await NotesModule.latest.started.wait()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(door.switch_off, "mcp")
            await door.closing()
            with anyio.move_on_after(0.5) as patience:
                await NotesModule.latest.cancelled.wait()
            assert patience.cancelled_caught
            NotesModule.latest.go.set()
            answer = json.loads(await process.stdout.receive())
    assert answer["result"]["structuredContent"] == {"names": ["waited"]}
    assert (await ended(process))[0] == 1


async def test_the_bridge_works_where_the_port_is_taken(home):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with house(home, port=port) as door:
            status = await door.person.call("mcp.status")
            assert status.url == ""
            assert str(port) in status.problem
            checks = {check.name: check for check in (await door.person.call("kernel.doctor")).checks}
            assert not checks["mcp address"].ok
            async with Client(bridge(door, await door.token("juno"))) as client:
                result = await client.call_tool("notes.where", {})
                assert result.structured_content["caller"] == "mcp:agent:juno"
