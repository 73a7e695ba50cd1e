"""Points: the places where a process can be killed: before each statement, and between any durable steps."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from takeback import faults
from takeback_acts.rows.postgres.link import PostgresLink
from takeback_acts.rows.postgres.wire import Wire
from takeback_acts.rows.sessions.postgresql import PostgresSession
from takeback_acts.rows.sqlite.link import SqliteLink

Point = tuple[str, int]

_STATEMENTS = (
    (SqliteLink, "execute", "statement"),
    (SqliteLink, "executemany", "statements"),
    (Wire, "run", "statement"),
    (Wire, "run_both", "statement"),
    (PostgresLink, "executemany", "statements"),
    (PostgresSession, "run", "given"),
)


class Points:
    """Notes every point that is passed, once it `begins`, and kills the process at one of them."""

    def __init__(self, kill: Point | None) -> None:
        self.passed: list[Point] = []
        self.kill = kill
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, name: str) -> None:
        if self._is_here(name):
            die()

    def _is_here(self, name: str) -> bool:
        with self._lock:
            self._counts[name] += 1
            here = (name, self._counts[name])
            self.passed.append(here)
        return here == self.kill

    def begin(self) -> None:
        """From now on, for as long as this process lives."""
        faults.install(self)
        for owner, name, told in _STATEMENTS:
            setattr(owner, name, self._around(getattr(owner, name), told))
        Wire.commit = self._committing(Wire.commit)  # type: ignore[method-assign]

    def _around(self, run: Callable[..., Any], told: str) -> Callable[..., Any]:
        def around(*args: Any, **more: Any) -> Any:
            self(told)  # behind one statement is before the next, or before a point of its own
            return run(*args, **more)

        return around

    def _committing(self, commit: Callable[..., None]) -> Callable[..., None]:
        """A commit may be cut off before it is sent, and when it is sent and nobody hears of its end."""

        def around(wire: Wire, before: Any) -> None:
            self("commit")
            if self._is_here("commit.sent"):
                _send_and_die(wire, before)
            commit(wire, before)

        return around


def _send_and_die(wire: Wire, before: Any) -> None:
    """Sends statements and a commit; nobody hears what becomes of them."""
    if before:
        wire._results = die  # type: ignore[method-assign]
        wire._together([*before, ("COMMIT", ())])
    wire._server.send_query(b"COMMIT")
    wire._server.flush()
    die()


def die() -> Any:
    """What a power cut, the kernel short of memory, or a person does to a process."""
    os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()  # whatever thread this is, nothing after the kill may run
