"""The client's end of the socket. It imports little, since a person waits for every millisecond of it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from takeback.errors import RefusedError, TakebackError
from takeback.peer import peer_pid, peer_uid
from takeback_doors.cli.wire import REQUEST_LIMIT, decode_answer, encode, too_large

# A list takes milliseconds, so a daemon that is stopped or hangs must not hang its asker for ever.
_LISTING_SECONDS = 30.0
_QUICK = frozenset({"kernel.modules", "kernel.reach", "kernel.status", "kernel.tools"})


class Connection:
    """One connection to the daemon; requests are answered in order, one at a time."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._lines = link.makefile("rb")

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._lines.close()
        self._link.close()

    def call(
        self,
        tool: str,
        args: dict[str, Any] | None = None,
        *,
        dry_run: bool = False,
        present: bool = False,
        session: str | None = None,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Call a tool as the person; returns its result, raises what the daemon answered as an error."""
        request: dict[str, Any] = {"tool": tool, "args": args or {}}
        if dry_run:
            request["dry_run"] = True
        if present:
            request["present"] = True
        if session is not None:
            request["session"] = session
        quick = tool.endswith(".list") or tool in _QUICK
        self._link.settimeout(timeout or (_LISTING_SECONDS if quick else None))
        self._send(request)
        result: dict[str, Any] = self._answer()["result"]
        return result

    def follow(self, after: int | None = None) -> Iterator[dict[str, Any]]:
        """Events, `{seq, at, kind, data}`, from the one behind number `after` on, or from now on.

        When this returns, nothing that happens from now on will be missed.
        """
        self._link.settimeout(None)
        self._send({"follow": after})
        self._answer()
        return self._events()

    def _events(self) -> Iterator[dict[str, Any]]:
        while True:
            yield self._answer()["event"]

    def _send(self, request: dict[str, Any]) -> None:
        line = encode(request)
        if len(line) > REQUEST_LIMIT:
            raise too_large(str(len(line)))
        try:
            self._link.sendall(line)
        except TimeoutError:
            raise _silent() from None
        except OSError:
            # It may have said why before it hung up; the answer is read next.
            pass

    def _answer(self) -> dict[str, Any]:
        try:
            line = self._lines.readline()
        except TimeoutError:
            raise _silent() from None
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            raise _gone()
        answer = decode_answer(line)
        if not answer["ok"]:
            raise TakebackError.from_dict(answer["error"])
        return answer

    def peer(self) -> int:
        """The process id of the daemon."""
        return peer_pid(self._link)


def try_connect(path: Path) -> Connection | None:
    """A connection to whatever listens on a socket, or None where nothing does."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        link.close()
        return None
    except OSError as error:
        link.close()
        raise TakebackError(
            "daemon.unreachable",
            f"The daemon's socket {path} can't be used: {error.strerror or error}",
            "Run `takeback doctor`.",
        ) from None
    if peer_uid(link) != os.geteuid():
        link.close()
        raise _foreign(path)
    return Connection(link)


def not_running() -> TakebackError:
    """The error of a command that needs a daemon and may not start one."""
    return TakebackError(
        "daemon.not_running",
        "No takeback daemon is running for this home",
        "Run `takeback serve`, or leave out --no-start.",
    )


def _foreign(path: Path) -> TakebackError:
    return RefusedError(
        "daemon.foreign",
        f"What listens on {path} runs as another user",
        "Nothing was sent to it. Set TAKEBACK_HOME to a folder of your own.",
    )


def _gone() -> TakebackError:
    return TakebackError(
        "daemon.gone",
        "The daemon went away before it answered",
        "Look at `takeback log`: what you asked for may have been done or not.",
    )


def _silent() -> TakebackError:
    return TakebackError(
        "daemon.silent",
        "The daemon is there but does not answer",
        "Run `takeback stop` and try again; its log is daemon.log in the state folder.",
        retryable=True,
    )
