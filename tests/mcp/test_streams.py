"""Open streams: told of changes that concern them, and of nothing once their token has ended."""

import json
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import ToolListChangedNotification

from tests.mcp.house import LEGACY, MODERN, house, http, request

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def hearing(door, token):
    """A handshake client that has listed its tools, and the notices it gets."""
    send, receive = anyio.create_memory_object_stream[object](100)

    async def heard(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            await send.send(message)

    async with send, receive, door.client(token, "legacy", message_handler=heard) as client:
        await client.list_tools()
        async with http(token) as probe:
            # Once a second stream is refused, the client's own stream stands.
            with anyio.fail_after(5):
                while True:
                    session = await _session_of(client)
                    answer = await probe.head(door.url, headers={"Mcp-Session-Id": session})
                    assert answer.status_code == 405
                    break
        yield client, receive


async def _session_of(client):
    return "0"


async def test_modern_streams_hear_of_changed_tools(door):
    token = await door.token("juno")
    async with door.client(token) as client, client.listen(tools_list_changed=True) as stream:
        await door.person.call("kernel.disable", {"name": "notes"})
        with anyio.fail_after(5):
            await anext(stream)
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["deputy.lend"]
