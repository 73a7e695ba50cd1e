"""Tokens and private files: where they must never be found."""

import logging
import os
import sqlite3
import stat
import sys

import pytest

from tests.mcp.house import house, http, request, routing

pytestmark = pytest.mark.anyio


def everything_under(folder):
    """The bytes of every file of a home."""
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                with open(path, "rb") as file:
                    yield path, file.read()


def logged(caplog):
    """What the daemon's side has logged; the client runs in this process too."""
    ours = [r for r in caplog.records if not r.name.startswith(("httpcore2", "httpx2", "mcp.client"))]
    return "\n".join(f"{record.name} {record.getMessage()} {record.exc_text or ''}" for record in ours)


async def test_48_a_token_is_in_no_file_and_no_log(home, caplog):
    caplog.set_level(logging.DEBUG)
    async with house(home) as door:
        token = await door.token("juno")
        rotated = (await door.person.call("agents.rotate", {"name": "juno"})).token
        secrets = [token, rotated]
        for bearer in secrets:
            await door.post(bearer, request("tools/call", "notes.list", {}), **routing("notes.list"))
            await door.post(bearer, b"{", **routing("notes.list"))
            await door.post(bearer + "x", request("tools/call", "notes.list", {}))
        for mode in ("auto", "legacy"):
            async with door.client(rotated, mode) as client:
                await client.list_tools()
                await client.call_tool("notes.crash", {"name": "hunter2"})
                await client.call_tool("notes.delete", {"name": "hunter2"})
        async with http(rotated) as client:
            answer = await client.post(door.url + f"?token={rotated}", json={})
            assert rotated not in answer.text
        await door.person.call("agents.revoke", {"name": "juno"})
        refused = await door.post(rotated, request("tools/call", "notes.list", {}))
        assert rotated not in refused.text
        rows = (await door.person.call("audit.list", {"limit": 1000})).model_dump_json()
        listed = (await door.person.call("agents.list")).model_dump_json()
    secrets.append("hunter2")
    for secret in secrets:
        assert secret not in rows + listed
        assert secret not in logged(caplog)
        for path, content in everything_under(home):
            assert secret.encode() not in content, path


async def test_48_a_refused_token_is_logged_by_its_agents_name(door, caplog):
    token = await door.token("juno")
    await door.person.call("agents.revoke", {"name": "juno"})
    await door.post(token, request("tools/call", "notes.list", {}), **routing("notes.list"))
    assert "revoked" in caplog.text
    assert "juno" in caplog.text
    assert token not in caplog.text


async def test_48_a_token_that_is_no_token_is_quoted_nowhere(door, caplog):
    secret = "tb_" + "s" * 600
    answer = await door.post(secret, request("tools/call", "notes.list", {}), **routing("notes.list"))
    assert answer.status_code == 401
    assert "sss" not in answer.text
    assert "sss" not in caplog.text


async def test_48_the_database_keeps_a_digest_alone(home):
    async with house(home) as door:
        token = await door.token("juno")
    with sqlite3.connect(home / "data" / "takeback.db") as db:
        (digest,) = db.execute("SELECT digest FROM agents").fetchone()
    db.close()
    assert len(digest) == 32
    assert token.encode() not in digest


async def test_50_every_file_and_folder_is_the_persons_alone_under_a_loose_umask(home):
    before = os.umask(0)
    try:
        async with house(home) as door:
            await door.call(await door.token("juno"), "notes.list", {})
            for base, folders, names in os.walk(home):
                for name in [*folders, *names]:
                    mode = os.lstat(os.path.join(base, name)).st_mode
                    assert stat.S_IMODE(mode) & 0o077 == 0, name
    finally:
        os.umask(before)


async def test_7_no_request_starts_a_process(door):
    token = await door.token("juno")
    started, watching = [], [True]

    def hook(event: str, args: object) -> None:
        if watching[0] and event in ("subprocess.Popen", "os.exec", "os.fork", "os.posix_spawn", "os.system"):
            started.append(event)

    sys.addaudithook(hook)
    try:
        for body in ({"command": "id"}, {"name": "$(id)"}, {"name": "; id", "env": {"PATH": "."}}):
            for tool in ("notes.delete", "notes.list", "deputy.lend"):
                await door.post(token, request("tools/call", tool, body), **routing(tool), X_Command="id")
    finally:
        watching[0] = False
    assert started == []


async def test_the_sdks_traceback_of_a_hang_up_is_dropped_and_no_other(door, caplog):
    log = logging.getLogger("uvicorn.error")
    sent = "Unexpected ASGI message 'http.response.start' sent, after response already completed."
    hang_up = RuntimeError(sent)
    log.error("Exception in ASGI application", exc_info=hang_up)
    log.error("Exception in ASGI application", exc_info=ExceptionGroup("in a group", [hang_up]))
    assert caplog.records == []
    log.error("Exception in ASGI application", exc_info=RuntimeError("another"))
    log.error("Exception in ASGI application", exc_info=ExceptionGroup("mixed", [hang_up, ValueError("x")]))
    assert len(caplog.records) == 2
