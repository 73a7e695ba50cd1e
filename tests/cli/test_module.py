"""The door itself: what its socket answers to whom."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest
from anyio.abc import SocketStream
from pydantic import BaseModel, ConfigDict

from takeback import Context, Event, Kernel, Module, tool
from takeback.manifest import Manifest
from takeback_doors.cli.module import CliModule
from takeback_doors.cli.wire import REQUEST_LIMIT

pytestmark = pytest.mark.anyio


class Words(BaseModel):
    """Some text."""

    model_config = ConfigDict(extra="forbid")
    words: str = ""


class Seen(BaseModel):
    """What a tool saw of its context."""

    words: str
    caller: str
    dry_run: bool
    present: bool


class Rang(Event):
    """The bell rang."""

    kind: ClassVar[str] = "bell.rang"
    words: str


class BellModule(Module):
    """A module for these tests: it echoes, waits and rings."""

    manifest: ClassVar[Manifest] = Manifest(1, "bell", "Rings")
    began: ClassVar[anyio.Event]
    go: ClassVar[anyio.Event]
    over: ClassVar[anyio.Event]
    ended: ClassVar[list[str]]

    @tool(effect="read", reach=("person",))
    async def echo(self, ctx: Context, args: Words) -> Seen:
        """Say it back."""
        return Seen(words=args.words, caller=ctx.caller, dry_run=ctx.dry_run, present=ctx.present)

    @tool(effect="read", reach=("person",))
    async def look(self, ctx: Context, args: Words) -> Seen:
        """Read until somebody stops it."""
        return await self._wait("look")

    @tool(effect="write", reach=("person",))
    async def pull(self, ctx: Context, args: Words) -> Seen:
        """Write until the test lets it go on."""
        return await self._wait("pull")

    @tool(effect="write", reach=("person",))
    async def ring(self, ctx: Context, args: Words) -> Seen:
        """Emit an event."""
        await self.host.store.transaction(lambda tx: tx.emit(Rang(words=args.words)))
        return await self.echo(ctx, args)

    @tool(effect="read", reach=("agents",))
    async def private(self, ctx: Context, args: Words) -> Seen:
        """Not for the person."""
        raise AssertionError("nobody gets here")

    async def _wait(self, name: str) -> Seen:
        BellModule.began.set()
        try:
            await BellModule.go.wait()
        except BaseException:
            BellModule.ended.append(f"{name} cancelled")
            BellModule.over.set()
            raise
        BellModule.ended.append(f"{name} done")
        BellModule.over.set()
        return Seen(words=name, caller="", dry_run=False, present=False)


@pytest.fixture
async def kernel() -> AsyncIterator[Kernel]:
    """A kernel with the door and a bell."""
    BellModule.began, BellModule.go, BellModule.over = anyio.Event(), anyio.Event(), anyio.Event()
    BellModule.ended = []
    with tempfile.TemporaryDirectory(prefix="tb-") as folder:
        async with Kernel(Path(folder), settings={}, modules=[CliModule, BellModule]) as kernel:
            yield kernel


@asynccontextmanager
async def connected(kernel: Kernel) -> AsyncIterator["Client"]:
    with anyio.fail_after(20):
        async with await anyio.connect_unix(str(kernel.home.socket)) as stream:
            yield Client(stream)


class Client:
    """Speaks the protocol by hand."""

    def __init__(self, stream: SocketStream) -> None:
        self.stream = stream
        self.rest = b""

    async def send(self, request: object) -> None:
        await self.stream.send(json.dumps(request).encode() + b"\n")

    async def answer(self) -> Any:
        while b"\n" not in self.rest:
            self.rest += await self.stream.receive()
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    async def ask(self, request: object) -> Any:
        await self.send(request)
        return await self.answer()


async def test_a_caller_is_the_person_at_this_door(kernel: Kernel):
    async with connected(kernel) as client:
        answer = await client.ask({"tool": "bell.echo", "args": {"words": "hä\n"}})
        seen = {"words": "hä\n", "caller": "cli:person", "dry_run": False, "present": False}
        assert answer == {"ok": True, "result": seen}


async def test_flags_reach_the_context(kernel: Kernel):
    async with connected(kernel) as client:
        answer = await client.ask({"tool": "bell.echo", "args": {}, "dry_run": True, "present": True})
        assert (answer["result"]["dry_run"], answer["result"]["present"]) == (True, True)


async def test_requests_sent_at_once_are_answered_in_order(kernel: Kernel):
    async with connected(kernel) as client:
        lines = [{"tool": "bell.echo", "args": {"words": str(n)}} for n in range(50)]
        await client.stream.send(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        assert [(await client.answer())["result"]["words"] for _ in lines] == [str(n) for n in range(50)]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        b'{"tool": 1, "args": {}}',
        b'{"tool": "bell.echo", "args": []}',
        b'{"tool": "bell.echo", "dry_run": "yes"}',
        b'{"tool": "bell.echo", "caller": "module:undo"}',
        b'{"follow": -1}',
        b'{"follow": true}',
        b'{"follow": 1, "tool": "bell.echo"}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
async def test_a_malformed_request_is_said_and_harms_nothing(kernel: Kernel, line: bytes):
    async with connected(kernel) as client:
        await client.stream.send(line + b"\n")
        answer = await client.answer()
        assert (answer["ok"], answer["error"]["code"]) == (False, "request.malformed")
        assert (await client.ask({"tool": "bell.echo"}))["ok"] is True


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"tool": "bell.nothing"}, "tool.unknown"),
        ({"tool": "bell.private"}, "tool.unknown"),
        ({"tool": "bell.echo", "args": {"caller": "module:undo"}}, "args.invalid"),
        ({"tool": "bell.echo", "args": {"words": 7}}, "args.invalid"),
    ],
)
async def test_a_refused_call_is_a_typed_answer(kernel: Kernel, request_: object, code: str):
    async with connected(kernel) as client:
        answer = await client.ask(request_)
        assert (answer["ok"], answer["error"]["code"]) == (False, code)


async def test_a_request_over_the_limit_is_refused_and_others_go_on(kernel: Kernel):
    async with connected(kernel) as client, connected(kernel) as other:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_flood, client)
            assert (await client.answer())["error"]["code"] == "request.too_large"
            tasks.cancel_scope.cancel()
        assert (await other.ask({"tool": "bell.echo"}))["ok"] is True


async def _flood(client: Client) -> None:
    try:
        for _ in range(REQUEST_LIMIT // 65536 + 2):
            await client.stream.send(b"x" * 65536)
    except anyio.BrokenResourceError:
        return


async def test_a_read_whose_client_has_gone_is_cancelled(kernel: Kernel):
    async with connected(kernel) as client:
        await client.send({"tool": "bell.look"})
        await BellModule.began.wait()
    with anyio.fail_after(20):
        await BellModule.over.wait()
    assert BellModule.ended == ["look cancelled"]


async def test_a_write_whose_client_has_gone_runs_to_its_end(kernel: Kernel):
    async with connected(kernel) as client:
        await client.send({"tool": "bell.pull"})
        await BellModule.began.wait()
    async with connected(kernel) as other:
        assert (await other.ask({"tool": "bell.echo"}))["ok"] is True
    assert BellModule.ended == []
    BellModule.go.set()
    with anyio.fail_after(20):
        await BellModule.over.wait()
    assert BellModule.ended == ["pull done"]


async def test_a_request_sent_while_a_read_runs_is_kept(kernel: Kernel):
    async with connected(kernel) as client:
        await client.send({"tool": "bell.look"})
        await BellModule.began.wait()
        await client.send({"tool": "bell.echo", "args": {"words": "next"}})
        BellModule.go.set()
        assert (await client.answer())["result"]["words"] == "look"
        assert (await client.answer())["result"]["words"] == "next"


async def test_events_are_followed_from_a_number_and_from_now(kernel: Kernel):
    async with connected(kernel) as client, connected(kernel) as early, connected(kernel) as late:
        following = await early.ask({"follow": None})
        await client.ask({"tool": "bell.ring", "args": {"words": "one"}})
        assert (await early.answer())["event"]["data"] == {"words": "one"}
        assert (await late.ask({"follow": following["following"]}))["ok"] is True
        await client.ask({"tool": "bell.ring", "args": {"words": "two"}})
        assert [(await late.answer())["event"]["data"]["words"] for _ in range(2)] == ["one", "two"]
        assert (await early.answer())["event"]["kind"] == "bell.rang"


async def test_following_a_number_never_given_is_said(kernel: Kernel):
    async with connected(kernel) as client:
        await client.send({"follow": 10**9})
        assert (await client.answer())["following"] == 10**9
        assert (await client.answer())["error"]["code"] == "events.gone"


async def test_the_door_closes_when_what_runs_is_answered(kernel: Kernel):
    async with connected(kernel) as idle, connected(kernel) as busy, connected(kernel) as follower:
        await follower.ask({"follow": None})
        await idle.ask({"tool": "bell.echo"})
        await busy.send({"tool": "bell.pull"})
        await BellModule.began.wait()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kernel.supervisor.disable, "cli")
            for gone in (idle, follower):
                with pytest.raises(anyio.EndOfStream):
                    await gone.answer()
            BellModule.go.set()
            assert (await busy.answer())["result"]["words"] == "pull"
    assert not kernel.home.socket.exists()


async def test_the_door_opens_again(kernel: Kernel):
    await kernel.supervisor.disable("cli")
    await kernel.supervisor.enable("cli")
    async with connected(kernel) as client:
        assert (await client.ask({"tool": "bell.echo"}))["ok"] is True


async def test_a_socket_that_a_crash_left_is_taken_over():
    with tempfile.TemporaryDirectory(prefix="tb-") as folder:
        kernel = Kernel(Path(folder), settings={}, modules=[CliModule, BellModule])
        kernel.home.create()
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(kernel.home.socket))
        async with kernel, connected(kernel) as client:
            assert (await client.ask({"tool": "bell.echo"}))["ok"] is True


_CONNECT = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])
try:
    link.sendall(b'{"tool": "bell.echo"}\\n')
except BrokenPipeError:
    pass
print(link.recv(65536).decode("ascii"))
"""
_NOBODY = 65534


async def test_the_socket_answers_its_own_user_alone(kernel: Kernel):
    # Opened wide, so that what refuses is the check of the user and not the modes.
    for path in (kernel.home.socket, kernel.home.runtime, kernel.home.runtime.parent):
        path.chmod(0o777)
    users = {os.getuid(): True} | ({_NOBODY: False} if os.getuid() == 0 else {})
    for user, let_in in users.items():
        command = [sys.executable, "-I", "-c", _CONNECT, str(kernel.home.socket), str(user)]
        with anyio.fail_after(20):
            ran = await anyio.run_process(command, stderr=subprocess.STDOUT)
        answer = json.loads(ran.stdout)
        assert answer["ok"] is let_in
        assert let_in or answer["error"]["code"] == "peer.refused"


async def test_a_user_that_is_not_the_daemons_is_refused(kernel: Kernel, monkeypatch: pytest.MonkeyPatch):
    async with connected(kernel) as client:
        await client.ask({"tool": "bell.echo"})
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        async with connected(kernel) as stranger:
            answer = await stranger.answer()
            assert answer["error"]["code"] == "peer.refused"
            with pytest.raises(anyio.EndOfStream):
                await stranger.answer()
