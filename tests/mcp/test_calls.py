"""Listing and calling, in both protocol eras."""

import json
from functools import partial

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import TextContent, ToolsCapability

from tests.mcp.house import LEGACY, NotesModule, OddModule, house, request

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("mode", ["auto", "legacy"])

FOR_AGENTS = [
    "deputy.lend",
    "notes.clash",
    "notes.crash",
    "notes.delete",
    "notes.list",
    "notes.send",
    "notes.slow",
    "notes.where",
]


@both
async def test_list_shows_what_the_agent_reaches_sorted(door, mode):
    token = await door.token("juno")
    async with door.client(token, mode) as client:
        assert client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
        assert client.server_capabilities.tools == ToolsCapability(list_changed=True)
        tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == FOR_AGENTS


@both
async def test_every_tool_has_hints_schemas_and_a_title(door, mode):
    token = await door.token("juno")
    async with door.client(token, mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    for tool in tools.values():
        hints = tool.annotations
        every = [hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint]
        assert None not in every
        assert tool.title
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema["type"] == "object"
    assert tools["notes.list"].annotations.read_only_hint
    assert tools["notes.delete"].annotations.destructive_hint
    assert tools["notes.delete"].annotations.idempotent_hint
    assert tools["notes.send"].annotations.open_world_hint
    assert not tools["notes.delete"].annotations.open_world_hint


async def test_the_list_is_private_and_never_fresh(door):
    token = await door.token("juno")
    headers = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "tools/list"}
    response = await door.post(token, request("tools/list", "", {}), **headers)
    assert response.json()["result"]["ttlMs"] == 0
    assert response.json()["result"]["cacheScope"] == "private"


@both
async def test_a_call_answers_structure_and_text(door, mode):
    token = await door.token("juno")
    async with door.client(token, mode) as client:
        result = await client.call_tool("notes.delete", {"name": "milk"})
        assert not result.is_error
        assert result.structured_content == {"name": "milk", "existed": True}
        assert json.loads(result.content[0].text) == result.structured_content
        again = await client.call_tool("notes.delete", {"name": "milk"})
        assert again.structured_content["existed"] is False


@both
async def test_a_typed_error_tells_what_to_do(door, mode):
    token = await door.token("juno")
    async with door.client(token, mode) as client:
        await client.list_tools()
        result = await client.call_tool("notes.clash", {"name": "milk"})
    assert result.is_error
    assert result.content[0].text == "milk changed since. Read it again."
    assert result.meta["takeback/error"] == {
        "code": "notes.clash",
        "kind": "conflict",
        "message": "milk changed since",
        "hint": "Read it again.",
        "retryable": True,
        "data": {"now": "v2"},
    }


@both
async def test_wrong_arguments_are_an_error_the_model_can_mend(door, mode):
    token = await door.token("juno")
    async with door.client(token, mode) as client:
        result = await client.call_tool("notes.delete", {"nom": "hunter2"})
    assert result.is_error
    assert result.meta["takeback/error"]["code"] == "args.invalid"
    assert "name" in result.content[0].text
    assert "hunter2" not in result.content[0].text


@both
async def test_a_crash_gives_the_calls_id_and_no_innards(door, mode, caplog):
    token = await door.token("juno")
    async with door.client(token, mode) as client:
        result = await client.call_tool("notes.crash", {"name": "hunter2"})
    assert result.meta
    call = result.meta["takeback/error"]["data"]["call"]
    assert result.content[0].text.startswith(f"Error executing tool notes.crash (call {call}).")
    assert "hunter2" not in str(result)
    assert "hunter2" not in caplog.text
    row = (await door.person.call("audit.get", {"id": call})).row
    assert (row.tool, row.outcome, row.caller) == ("notes.crash", "call.crashed", "mcp:agent:juno")


@both
async def test_a_call_past_its_time_is_cancelled(home, mode):
    async with house(home, call_timeout=0.2) as door:
        token = await door.token("juno")
        async with door.client(token, mode) as client:
            result = await client.call_tool("notes.slow", {})
        assert result.meta
        assert result.meta["takeback/error"]["code"] == "call.deadline"
        assert result.meta["takeback/error"]["retryable"] is True
        with anyio.fail_after(5):
            await NotesModule.latest.cancelled.wait()


@both
async def test_a_clients_cancel_reaches_the_tool(door, mode, caplog):
    token = await door.token("juno")
    notes = NotesModule.latest
    async with door.client(token, mode) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "notes.slow", {})
            with anyio.fail_after(5):
                await notes.started.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(5):
            await notes.cancelled.wait()
        assert (await client.call_tool("notes.list", {})).structured_content == {"names": ["milk"]}
    assert "Traceback" not in caplog.text
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_client_that_hangs_up_cancels_its_call(door, caplog):
    token = await door.token("juno")
    notes = NotesModule.latest
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(door.call, token, "notes.slow", {})
        with anyio.fail_after(5):
            await notes.started.wait()
        tasks.cancel_scope.cancel()
    with anyio.fail_after(5):
        await notes.cancelled.wait()
    assert not [record for record in caplog.records if record.exc_info]


@both
async def test_many_calls_at_once(door, mode):
    token = await door.token("juno")
    done = []
    async with door.client(token, mode) as client:

        async def one(number: int) -> None:
            result = await client.call_tool("notes.delete", {"name": f"n{number}"})
            done.append(result.structured_content["name"])

        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(one, number)
    assert sorted(done) == sorted(f"n{number}" for number in range(40))


async def test_a_stop_lets_a_call_in_flight_end(home):
    answers = []
    async with house(home) as door:
        token = await door.token("juno")

        async def call() -> None:
            answers.append(await door.call(token, "notes.slow", {}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            with anyio.fail_after(5):
                await NotesModule.latest.started.wait()
            tasks.start_soon(door.switch_off, "mcp")
            await door.closing()
            await anyio.wait_all_tasks_blocked()
            NotesModule.latest.go.set()
    assert answers[0]["result"]["structuredContent"] == {"names": ["waited"]}


@both
async def test_an_unknown_tool(door, mode):
    token = await door.token("juno")
    async with door.client(token, mode) as client:
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("notes.nope", {})


async def test_a_stop_does_not_wait_for_ever(door):
    token = await door.token("juno")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(door.call_and_be_cut, token, "notes.slow")
        with anyio.fail_after(5):
            await NotesModule.latest.started.wait()
        with anyio.fail_after(20):
            await door.switch_off("mcp")
            await NotesModule.latest.cancelled.wait()
    modules = {one.name: one for one in (await door.person.call("kernel.modules")).modules}
    assert modules["mcp"].state == "off"
    assert modules["notes"].state == "running"


async def test_a_handshake_client_that_hangs_up_leaves_no_traceback(door, caplog):
    token = await door.token("juno")
    notes = NotesModule.latest
    opening = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    init = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}
    session = (await door.post(token, init)).headers["mcp-session-id"]
    await door.post(token, {"jsonrpc": "2.0", "method": "notifications/initialized"}, Mcp_Session_Id=session)
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "notes.slow"}}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(door.post, token, call, Mcp_Session_Id=session))
        with anyio.fail_after(5):
            await notes.started.wait()
        tasks.cancel_scope.cancel()
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
    await door.post(token, cancel, Mcp_Session_Id=session)
    with anyio.fail_after(5):
        await notes.cancelled.wait()
    await anyio.wait_all_tasks_blocked()
    assert not [record for record in caplog.records if record.exc_info]


@both
async def test_an_answer_that_json_has_not(home, mode, caplog):
    async with house(home, OddModule) as door:
        token = await door.token("juno")
        async with door.client(token, mode) as client:
            assert (await client.call_tool("odd.number", {})).structured_content == {"value": None}
            result = await client.call_tool("odd.text", {})
    assert result.is_error
    assert isinstance(result.content[0], TextContent)
    assert "odd.text was done" in result.content[0].text
    assert result.meta
    assert result.meta["takeback/error"]["code"] == "call.crashed"
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"7",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"\xff\xfe",
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"method":7}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
        b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"tools/list"}',
    ],
)
@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25", "1999-01-01", "x" * 300])
async def test_no_body_is_too_odd(door, body, version, caplog):
    token = await door.token("juno")
    response = await door.post(token, body, MCP_Protocol_Version=version, Mcp_Method="tools/list")
    assert 400 <= response.status_code < 500
    assert "Traceback" not in response.text
    assert not [record for record in caplog.records if record.exc_info]
    assert "result" in await door.call(token, "notes.list", {})
