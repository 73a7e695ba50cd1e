"""`takeback mcp`: carries bytes between a client's pipes and the daemon's socket, and decides nothing."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from typing import Any

from takeback.errors import EXIT_CODES

_CHUNK = 65_536
# How long answers to the client's last words may still take after it has closed its end.
_LAST_WORDS = 5.0


def main(socket_path: str, token: str) -> int:
    """Connect standard input and output to the daemon as the agent with this token; the exit code.

    Ends when either side closes. What goes wrong is one line on standard error.
    """
    try:
        connection = _connect(socket_path)
    except OSError as error:
        return _fail(f"no daemon answers at {socket_path} ({error.strerror}); `takeback serve` starts one")
    with connection:
        try:
            connection.sendall(json.dumps({"token": token}).encode() + b"\n")
            answer, rest = _first_line(connection)
        except OSError as error:
            return _fail(f"the daemon hung up ({error.strerror})")
        if not answer.get("ok"):
            said = answer.get("error") or {}
            words = f"{said.get('message', 'the daemon hung up')}. {said.get('hint', '')}".strip()
            return _fail(words, EXIT_CODES.get(said.get("kind", ""), 1))
        return _carry(connection, rest)


def _connect(path: str) -> socket.socket:
    if os.stat(path).st_uid != os.geteuid():
        raise PermissionError(1, "the socket is somebody else's")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


def _first_line(connection: socket.socket) -> tuple[dict[str, Any], bytes]:
    received = b""
    while b"\n" not in received:
        chunk = connection.recv(_CHUNK)
        if not chunk:
            return {}, b""
        received += chunk
    line, rest = received.split(b"\n", 1)
    try:
        answer = json.loads(line)
    except ValueError:
        return {}, b""
    return (answer if isinstance(answer, dict) else {}), rest


def _carry(connection: socket.socket, rest: bytes) -> int:
    """Both directions at once, each on its own, so that neither waits for the other's reader."""
    client_left = threading.Event()
    upward = threading.Thread(target=_up, args=(connection, client_left), daemon=True)
    upward.start()
    try:
        _down(connection, rest)
    except BrokenPipeError:
        return 0
    except OSError:
        pass
    except KeyboardInterrupt:
        return 130
    return 0 if client_left.is_set() else _fail("the daemon closed the connection")


def _up(connection: socket.socket, client_left: threading.Event) -> None:
    try:
        while chunk := os.read(0, _CHUNK):
            connection.sendall(chunk)
    except OSError:
        return
    client_left.set()
    connection.settimeout(_LAST_WORDS)
    connection.shutdown(socket.SHUT_WR)


def _down(connection: socket.socket, rest: bytes) -> None:
    while True:
        view = memoryview(rest)
        while view:
            view = view[os.write(1, view) :]
        rest = connection.recv(_CHUNK)
        if not rest:
            return


def _fail(words: str, code: int = 1) -> int:
    sys.stderr.write(f"takeback mcp: {words}\n")
    return code
