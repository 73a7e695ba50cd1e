"""The client's end, against daemons that misbehave."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from takeback import RefusedError, TakebackError, UsageError
from takeback_doors.cli import client
from takeback_doors.cli.client import Connection, try_connect
from takeback_doors.cli.wire import REQUEST_LIMIT
from tests.cli.running import Cli


@contextmanager
def listening(path: Path, answer: Callable[[socket.socket], None]) -> Iterator[Connection]:
    """A connection to a server that treats its one client in a way of its own."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            link, _ = server.accept()
            with link:
                answer(link)

        thread = threading.Thread(target=serve)
        thread.start()
        connection = try_connect(path)
        assert connection is not None
        try:
            with connection:
                yield connection
        finally:
            thread.join(20)


@pytest.fixture
def path(cli: Cli) -> Path:
    """Where a socket can lie."""
    return cli.root / "s"


@pytest.mark.parametrize("line", [b"hello\n", b"[]\n", b"{}\n", b"7\n"])
def test_what_speaks_otherwise_is_told_so(path: Path, line: bytes):
    with listening(path, lambda link: link.sendall(line)) as connection:
        with pytest.raises(TakebackError) as caught:
            connection.call("kernel.status")
    assert caught.value.code == "daemon.garbled"


@pytest.mark.parametrize("said", [b"", b'{"ok": true, "resu'])
def test_a_daemon_that_ends_before_its_answer_is_told(path: Path, said: bytes):
    def answer(link: socket.socket) -> None:
        link.recv(65536)
        link.sendall(said)

    with listening(path, answer) as connection, pytest.raises(TakebackError) as caught:
        connection.call("kernel.status")
    assert caught.value.code == "daemon.gone"


@pytest.mark.parametrize("given", [{"timeout": 0.05}, {}])
def test_a_daemon_that_hangs_is_told_when_time_is_over(path: Path, monkeypatch, given):
    monkeypatch.setattr(client, "_LISTING_SECONDS", 0.05)
    over = threading.Event()

    def hang(link: socket.socket) -> None:
        over.wait(20)

    with listening(path, hang) as connection:
        with pytest.raises(TakebackError) as caught:
            connection.call("undo.list", **given)
        over.set()
    assert (caught.value.code, caught.value.retryable) == ("daemon.silent", True)


def test_a_refusal_is_heard_even_when_the_door_shuts_at_once(path: Path):
    refusal = b'{"ok":false,"error":{"code":"peer.refused","kind":"refused","message":"no"}}\n'
    with listening(path, lambda link: link.sendall(refusal)) as connection:
        with pytest.raises(RefusedError):
            connection.call("files.write", {"content": "x" * 1_000_000})


def test_a_request_over_the_limit_is_not_sent(path: Path):
    with listening(path, lambda link: link.close()) as connection, pytest.raises(UsageError) as caught:
        connection.call("files.write", {"content": "x" * REQUEST_LIMIT})
    assert caught.value.code == "request.too_large"


def test_nothing_is_sent_to_another_users_daemon(path: Path, monkeypatch: pytest.MonkeyPatch):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        with pytest.raises(RefusedError) as caught:
            try_connect(path)
        assert caught.value.code == "daemon.foreign"
        link, _ = server.accept()
        with link:
            assert link.recv(100) == b""


def test_a_path_that_is_no_socket_is_told(path: Path):
    path.write_text("x")
    assert try_connect(path) is None
    assert try_connect(path / "below") is None
    with pytest.raises(TakebackError) as caught:
        try_connect(path.parent / ("x" * 200))
    assert caught.value.code == "daemon.unreachable"


def test_a_runtime_folder_that_leads_elsewhere_is_refused(cli: Cli):
    elsewhere = cli.root / "elsewhere"
    elsewhere.mkdir()
    cli.home.runtime.parent.mkdir()
    cli.home.runtime.symlink_to(elsewhere)
    ran = cli.run("log", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "home.unsafe")
    assert list(elsewhere.iterdir()) == []
