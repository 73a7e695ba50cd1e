"""Who is calling: from the token alone, and never more than that agent."""

import statistics
import time

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from takeback import Caller, RefusedError
from tests.mcp.house import LEGACY, http, request, routing

pytestmark = pytest.mark.anyio

INIT = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}


@pytest.mark.parametrize(
    "value",
    [None, "", "Bearer", "Basic {}", "{}", "Bearer {}x", "Bearer {} {}", "Bearer tb_", "Bearer x" * 400],
)
async def test_11_no_token_no_call(door, value):
    token = await door.token("juno")
    body = request("tools/call", "notes.list", {})
    headers = dict(routing("notes.list"))
    if value is not None:
        headers["Authorization"] = value.format(token, token)
    response = await door.post(None, body, **headers)
    assert response.status_code == 401
    assert response.json()["error"]["code"] in ("agent.token", "agent.no_token")


async def test_11_two_tokens_are_no_token(door):
    token = await door.token("juno")
    lines = [
        f"Host: localhost:{door.port}",
        f"Authorization: Bearer {token}",
        f"Authorization: Bearer {token}",
    ]
    raw = "\r\n".join(["GET /mcp HTTP/1.1", *lines, "", ""]).encode()
    assert (await door.raw(raw)).split()[1] == b"401"


async def test_12_a_module_lends_an_agent_nothing(door):
    token = await door.token("juno")
    answer = await door.call(token, "deputy.lend", {"name": "notes.shred"})
    assert answer["result"]["isError"] is True
    assert answer["result"]["_meta"]["takeback/error"]["code"] == "tool.unknown"
    assert (await door.call(token, "notes.list", {}))["result"]["structuredContent"] == {"names": ["milk"]}
    assert (await door.call(token, "deputy.lend", {"name": "notes.list"}))["result"]["isError"] is False


async def test_13_a_label_comes_from_the_token_alone(door):
    token = await door.token("juno")
    meta = {
        "io.modelcontextprotocol/clientInfo": {"name": "cli:person", "version": "1"},
        "takeback/caller": "cli:person",
        "takeback/agent": "other",
        "caller": "module:undo",
    }
    body = request("tools/call", "notes.where", {}, **meta)
    response = await door.post(
        token, body, **routing("notes.where"), X_Takeback_Caller="cli:person", X_Forwarded_User="person"
    )
    where = response.json()["result"]["structuredContent"]
    assert (where["caller"], where["origin"], where["present"]) == ("mcp:agent:juno", "mcp:agent:juno", False)


async def test_13_arguments_set_no_label(door):
    token = await door.token("juno")
    for extra in ("as_", "caller", "confined_to_", "force_", "dry_run_"):
        answer = await door.call(token, "notes.where", {extra: "cli:person"})
        assert answer["result"]["_meta"]["takeback/error"]["code"] == "args.invalid"


@pytest.mark.parametrize(
    "name", ["a:b", "*", "Juno", "ju no", "j\u016bno", "jun\u043e", "person:x", "", "-a", "a" * 64, "juno\n"]
)
async def test_14_an_agents_name_can_be_no_other_label(door, name):
    with pytest.raises(Exception, match=r"agent\.name"):
        await door.token(name)
    with pytest.raises(RefusedError):
        Caller.agent("mcp", name)


async def test_14_an_agent_named_person_is_an_agent(door):
    token = await door.token("person")
    answer = await door.call(token, "notes.where", {})
    assert answer["result"]["structuredContent"]["caller"] == "mcp:agent:person"
    refused = await door.call(token, "notes.shred", {})
    assert refused["error"]["message"] == "Unknown tool: notes.shred"


async def test_15_another_agents_session_is_as_if_unknown(door):
    juno, guest = await door.token("juno"), await door.token("guest")
    opened = await door.post(juno, INIT)
    session = opened.headers["mcp-session-id"]
    list_tools = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    stolen = await door.post(guest, list_tools, Mcp_Session_Id=session, MCP_Protocol_Version=LEGACY)
    unknown = await door.post(guest, list_tools, Mcp_Session_Id="0" * 32, MCP_Protocol_Version=LEGACY)
    assert stolen.status_code == unknown.status_code == 404
    assert stolen.content == unknown.content
    async with http(guest) as client:
        left = await client.delete(door.url, headers={"Mcp-Session-Id": session})
        assert left.status_code == 404
    own = await door.post(juno, list_tools, Mcp_Session_Id=session, MCP_Protocol_Version=LEGACY)
    assert own.status_code == 200


async def test_17_a_batch_is_no_way_around(door):
    token = await door.token("juno")
    body = [request("tools/call", "notes.shred", {})]
    response = await door.post(token, body, **routing("notes.shred"))
    assert response.status_code == 400
    legacy = await door.post(token, body)
    assert legacy.status_code == 400
    assert (await door.call(token, "notes.list", {}))["result"]["structuredContent"] == {"names": ["milk"]}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_18_unreachable_and_unknown_answer_alike(door, mode):
    token = await door.token("juno")
    words = set()
    async with door.client(token, mode) as client:
        for name in (
            "notes.shred",
            "notes.plumb",
            "notes.nopee",
            "agents.add",
            "mcp.status",
            "kernel.status",
        ):
            with pytest.raises(MCPError) as caught:
                await client.call_tool(name, {"x": 1})
            words.add(
                (caught.value.code, str(caught.value).replace(name, "NAME"), str(caught.value.error.data))
            )
    assert len(words) == 1
    rows = (await door.person.call("audit.list", {"caller": "mcp:agent:juno", "allowed": False})).rows
    assert {row.tool for row in rows} >= {"notes.shred", "notes.plumb", "notes.nopee", "agents.add"}
    assert all(row.reason for row in rows)


async def test_18_an_unreachable_tool_with_odd_headers_is_still_unknown(door):
    token = await door.token("juno")
    told = set()
    for name in ("notes.shred", "notes.nopee"):
        response = await door.post(
            token, request("tools/call", name, {"a": 1}), **routing(name), Mcp_Param_A="2"
        )
        told.add((response.status_code, response.text.replace(name, "NAME")))
    assert len(told) == 1


async def test_18_unreachable_and_unknown_take_alike(door):
    token = await door.token("juno")
    took: dict[str, list[float]] = {"notes.shred": [], "notes.nopee": []}
    async with http(token) as client:
        head = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        for _ in range(60):
            for name, times in took.items():
                headers = head | {k.replace("_", "-"): v for k, v in routing(name).items()}
                started = time.perf_counter()
                await client.post(door.url, json=request("tools/call", name, {}), headers=headers)
                times.append(time.perf_counter() - started)
    one, other = (statistics.median(times) for times in took.values())
    assert 0.5 < one / other < 2


async def test_an_agents_scope_of_today_goes_with_each_call(door, tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    token = await door.token("juno", roots=[str(first)])

    async def roots() -> list[str]:
        answer = await door.call(token, "notes.where", {})
        return list(answer["result"]["structuredContent"]["roots"])

    assert await roots() == [str(first)]
    await door.person.call("agents.grant", {"name": "juno", "root": str(second)})
    assert await roots() == [str(first), str(second)]
    await door.person.call("agents.withdraw", {"name": "juno", "root": str(first)})
    assert await roots() == [str(second)]


async def test_an_agent_without_roots_may_touch_nothing(door):
    token = await door.token("juno")
    answer = await door.call(token, "notes.where", {})
    assert answer["result"]["structuredContent"]["roots"] == []


async def test_an_expired_token_is_refused_like_an_unknown_one(door, monkeypatch):
    token = await door.token("juno", expires=1)
    assert "result" in await door.call(token, "notes.list", {})
    later = time.time() + 86_401
    with monkeypatch.context() as clock:
        clock.setattr(time, "time", lambda: later)
        expired = await door.post(token, request("tools/call", "notes.list", {}), **routing("notes.list"))
    unknown = await door.post("tb_x", request("tools/call", "notes.list", {}), **routing("notes.list"))
    assert expired.status_code == unknown.status_code == 401
    assert expired.content == unknown.content


async def test_with_the_agents_module_off_nobody_comes_in(door):
    token = await door.token("juno")
    await door.person.call("kernel.disable", {"name": "agents"})
    with pytest.raises(httpx2.ConnectError):
        await door.call(token, "notes.list", {})
    modules = {one.name: one for one in (await door.person.call("kernel.modules")).modules}
    assert modules["mcp"].state == "waiting"
    await door.person.call("kernel.enable", {"name": "agents"})
    door.url = (await door.person.call("mcp.status")).url
    assert "result" in await door.call(token, "notes.list", {})
