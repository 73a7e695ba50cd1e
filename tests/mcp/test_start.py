"""Where the door listens, and when it refuses to."""

import socket

import anyio
import pytest
from pydantic import ValidationError

from takeback import Kernel
from takeback_core.agents.module import AgentsModule
from takeback_doors.mcp import web
from takeback_doors.mcp.models import Settings
from takeback_doors.mcp.module import McpModule
from tests.mcp.house import house

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_6_only_loopback_without_an_express_word(host):
    with pytest.raises(ValidationError, match="allow_remote"):
        Settings(host=host)
    with pytest.raises(ValidationError, match="hosts"):
        Settings(host=host, allow_remote=True)
    Settings(host=host, allow_remote=True, hosts=("box.example:7420",))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.0.0.2"])
def test_6_loopback_is_fine(host):
    assert Settings(host=host).host == host


async def test_6_listening_everywhere_turns_no_check_off(home):
    async with house(home, host="0.0.0.0", allow_remote=True, hosts=("box.example:1",)) as door:
        for host, wanted in (
            ("evil.example", b"421"),
            (f"0.0.0.0:{door.port}", b"421"),
            ("box.example:1", b"401"),
        ):
            answer = await door.raw(f"GET /mcp HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert answer.split()[1] == wanted


@pytest.mark.parametrize("host", ["0.0.0.0", "localhost"])
async def test_the_address_it_shows_is_one_it_answers_to(home, host):
    more = {"allow_remote": True, "hosts": ("box.example:1",)} if host == "0.0.0.0" else {}
    async with house(home, host=host, **more) as door:
        assert "0.0.0.0" not in door.url
        assert "result" in await door.call(await door.token("juno"), "notes.list", {})


async def test_it_listens_on_loopback_alone(door):
    assert door.url == f"http://127.0.0.1:{door.port}/mcp"


def test_it_answers_to_its_own_address_and_no_other():
    class Bound:
        def getsockname(self):
            return ("192.168.1.5", 7420)

    settings = Settings(host="192.168.1.5", allow_remote=True, hosts=("Box.example:7420",))
    names = {b"192.168.1.5:7420", b"box.example:7420", b"127.0.0.1:7420", b"localhost:7420", b"[::1]:7420"}
    assert web.hosts_of(Bound(), settings) == names  # type: ignore[arg-type]


async def test_a_wrong_setting_is_said_and_harms_nobody(home):
    sections = {"mcp": {"host": "0.0.0.0"}}
    async with Kernel(home, settings=sections, modules=[AgentsModule, McpModule]) as kernel:
        person = kernel.enter("cli:person")
        modules = {one.name: one for one in (await person.call("kernel.modules")).modules}
        assert modules["mcp"].state == "failed"
        assert "mcp.host" in modules["mcp"].why
        assert (await person.call("agents.list")).agents == []


async def test_off_and_on_again(door):
    token = await door.token("juno")
    with anyio.fail_after(10):
        await door.person.call("kernel.disable", {"name": "mcp"})
        await door.person.call("kernel.enable", {"name": "mcp"})
    door.url = (await door.person.call("mcp.status")).url
    assert "result" in await door.call(token, "notes.list", {})


async def test_two_kernels_in_one_process(tmp_path):
    async with house(tmp_path / "a") as one, house(tmp_path / "b") as other:
        token = await one.token("juno")
        assert "result" in await one.call(token, "notes.list", {})
        refused = await other.post(token, b"{}")
        assert refused.status_code == 401


async def test_checks_say_where_it_listens(door):
    report = await door.person.call("kernel.doctor")
    found = [check for check in report.checks if "mcp" in check.name]
    assert found
    assert all(check.ok for check in found)


def test_answers_are_not_held_back():
    # asyncio switches Nagle's algorithm off only for sockets that say that they are TCP.
    with web.bind(Settings(port=0)) as sock:
        assert sock.proto == socket.IPPROTO_TCP


async def test_a_store_that_fails_at_the_stop_leaves_nothing_open(home, caplog):
    async with house(home) as door:
        await door.call(await door.token("juno"), "notes.list", {})
        await door.kernel.store.transaction(lambda tx: tx.execute("DROP TABLE mcp_session"))
        await door.person.call("kernel.disable", {"name": "mcp"})
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", door.port))
