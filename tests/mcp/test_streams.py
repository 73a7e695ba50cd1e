"""Open streams: told of changes that concern them, and of nothing once their token has ended."""

import time
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from mcp.types import ToolListChangedNotification

from tests.mcp.house import LEGACY, MODERN, house, http, request, routing

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def handshake_client(door, token):
    """A handshake client, and the notices that come in on its own stream."""
    send, receive = anyio.create_memory_object_stream[object](100)

    async def heard(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            await send.send(message)

    async with send, receive, door.client(token, "legacy", message_handler=heard) as client:
        await client.list_tools()
        await anyio.wait_all_tasks_blocked()  # its GET stream stands
        yield client, receive


@asynccontextmanager
async def raw_stream(door, token):
    """A handshake session made by hand, and the lines of its GET stream."""
    opening = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}
    session = (await door.post(token, body)).headers["mcp-session-id"]
    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await door.post(token, done, Mcp_Session_Id=session)).status_code == 202
    head = {"Accept": "text/event-stream", "Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY}
    async with http(token, **head) as client, client.stream("GET", door.url) as response:
        assert response.status_code == 200
        await anyio.wait_all_tasks_blocked()
        yield response


async def switch(door, verb, name="notes"):
    await door.person.call(f"kernel.{verb}", {"name": name})


async def test_a_modern_stream_hears_of_changed_tools(door):
    token = await door.token("juno")
    async with door.client(token) as client, client.listen(tools_list_changed=True) as stream:
        await switch(door, "disable")
        with anyio.fail_after(5):
            await anext(stream)
        assert [tool.name for tool in (await client.list_tools()).tools] == ["deputy.lend"]
        await switch(door, "enable")
        with anyio.fail_after(5):
            await anext(stream)
        assert len((await client.list_tools()).tools) == 8


async def test_a_handshake_client_hears_of_changed_tools(door):
    token = await door.token("juno")
    async with handshake_client(door, token) as (client, notices):
        await switch(door, "disable")
        with anyio.fail_after(5):
            await notices.receive()
        assert [tool.name for tool in (await client.list_tools()).tools] == ["deputy.lend"]


async def test_only_the_agents_concerned_hear(home):
    rule = {"effect": "deny", "caller": "mcp:agent:guest", "tool": "notes.*", "reason": "guests keep out"}
    async with house(home, rules=[rule]) as door:
        juno, guest = await door.token("juno"), await door.token("guest")
        async with (
            door.client(juno) as one,
            door.client(guest) as other,
            one.listen(tools_list_changed=True) as concerned,
            other.listen(tools_list_changed=True) as not_concerned,
            handshake_client(door, guest) as (_, notices),
        ):
            await switch(door, "disable")
            with anyio.fail_after(5):
                await anext(concerned)
            # What concerns the guest comes now, so anything told before would have come first.
            await switch(door, "disable", "deputy")
            with anyio.fail_after(5):
                await anext(not_concerned)
                await notices.receive()
            with pytest.raises(anyio.WouldBlock):
                notices.receive_nowait()
            assert [tool.name for tool in (await other.list_tools()).tools] == []


async def test_20_a_revoked_agent_is_refused_at_its_next_call(door):
    token = await door.token("juno")
    assert "result" in await door.call(token, "notes.list", {})
    await door.person.call("agents.revoke", {"name": "juno"})
    refused = await door.post(token, request("tools/call", "notes.list", {}), **routing("notes.list"))
    assert refused.status_code == 401
    assert refused.json()["error"]["code"] == "agent.token"


@pytest.mark.parametrize("verb", ["revoke", "rotate"])
async def test_20_a_modern_stream_ends_with_its_token(door, verb):
    juno, guest = await door.token("juno"), await door.token("guest")
    async with (
        door.client(juno) as one,
        door.client(guest) as other,
        one.listen(tools_list_changed=True) as ended,
        other.listen(tools_list_changed=True) as going_on,
    ):
        await door.person.call(f"agents.{verb}", {"name": "juno"})
        with anyio.fail_after(5):
            assert [event async for event in ended] == []
            await switch(door, "disable")
            await anext(going_on)


@pytest.mark.parametrize("verb", ["revoke", "rotate"])
async def test_20_a_handshake_stream_ends_with_its_token(door, verb):
    token = await door.token("juno")
    async with raw_stream(door, token) as response:
        await door.person.call(f"agents.{verb}", {"name": "juno"})
        with anyio.fail_after(5):
            assert [line async for line in response.aiter_lines() if line.startswith("data")] == []


async def test_20_an_expired_tokens_stream_gets_nothing_more(door, monkeypatch):
    token = await door.token("juno", expires=1)
    later = time.time() + 86_401
    async with door.client(token) as client, client.listen(tools_list_changed=True) as stream:
        monkeypatch.setattr(time, "time", lambda: later)
        await switch(door, "disable")
        with anyio.fail_after(5):
            assert [event async for event in stream] == []


async def test_20_a_grant_ends_no_stream(door, tmp_path):
    token = await door.token("juno")
    (tmp_path / "docs").mkdir()
    async with door.client(token) as client, client.listen(tools_list_changed=True) as stream:
        await door.person.call("agents.grant", {"name": "juno", "root": str(tmp_path / "docs")})
        await switch(door, "disable")
        with anyio.fail_after(5):
            await anext(stream)


async def test_streams_are_bounded_and_counted(home):
    async with house(home, stream_limit=1) as door:
        token = await door.token("juno")
        async with door.client(token) as client:
            async with client.listen(tools_list_changed=True):
                assert (await door.person.call("mcp.status")).streams == 1
                answer = await _listen_once(door, token)
                assert answer["error"]["message"] == "Too many open streams"
            with anyio.fail_after(5):
                while (await door.person.call("mcp.status")).streams:
                    await anyio.wait_all_tasks_blocked()


async def _listen_once(door, token):
    body = request("subscriptions/listen", "", {})
    body["params"]["notifications"] = {"toolsListChanged": True}
    headers = {"MCP_Protocol_Version": MODERN, "Mcp_Method": "subscriptions/listen"}
    return (await door.post(token, body, **headers)).json()


async def test_a_stop_ends_every_stream(door):
    token = await door.token("juno")
    async with raw_stream(door, token) as response, door.client(token) as client:
        async with client.listen(tools_list_changed=True) as stream:
            with anyio.fail_after(4):
                await switch(door, "disable", "mcp")
                assert [event async for event in stream] == []
                assert [line async for line in response.aiter_lines() if line.startswith("data")] == []
        with pytest.raises(httpx2.ConnectError):
            await door.call(token, "notes.list", {})


async def test_a_stream_that_fails_keeps_nobody_from_hearing(door, monkeypatch, caplog):
    juno, guest = await door.token("juno"), await door.token("guest")
    async with handshake_client(door, juno), door.client(guest) as other:

        async def broken(self, **_: object) -> None:
            raise RuntimeError("hunter2")

        monkeypatch.setattr("mcp.server.connection.Connection.send_tool_list_changed", broken)
        token = await door.token("third")
        async with raw_stream(door, token), other.listen(tools_list_changed=True) as stream:
            await switch(door, "disable")
            with anyio.fail_after(5):
                await anext(stream)
            await switch(door, "enable")
            with anyio.fail_after(5):
                await anext(stream)
    assert "hunter2" not in caplog.text
