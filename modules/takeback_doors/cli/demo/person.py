"""The person of the demo: real `takeback` commands in processes of their own, and a daemon besides."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from takeback_doors.cli.demo.promise import require

_TAKEBACK = [sys.executable, "-P", "-m", "takeback_doors.cli"]
# A command takes a fraction of a second; one that hangs must not keep the demo for ever.
_SECONDS = 20.0


class Person:
    """Types commands in a folder, with a home and a daemon of their own."""

    def __init__(self, home: Path, work: Path) -> None:
        self._work = work
        self._environ = {
            name: value for name, value in os.environ.items() if not name.startswith("TAKEBACK_")
        }
        # No fixed port: the demo must run beside a daemon of the person's own.
        self._environ |= {"TAKEBACK_HOME": str(home), "TAKEBACK_MCP__PORT": "0", "COLUMNS": "76"}
        self._daemon: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the daemon and wait until its doors answer; it is a child, so that none can stay behind."""
        reading, writing = os.pipe()
        try:
            # An interruption between the daemon's birth and our knowing of it would leave it behind.
            with _later(signal.SIGINT, signal.SIGTERM):
                self._daemon = subprocess.Popen(
                    [*_TAKEBACK, "serve", "--ready-fd", str(writing)],
                    env=self._environ,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[writing],
                    start_new_session=True,  # Ctrl-C is for the demo, which then ends its daemon in order
                )
        finally:
            os.close(writing)
        with open(reading, "rb") as pipe:
            said = pipe.readline() if select.select([pipe], [], [], _SECONDS)[0] else b""
        answer: dict[str, Any] = (
            json.loads(said) if said.endswith(b"\n") else {"ok": False, "error": "it said nothing"}
        )
        require(answer["ok"] is True, f"the daemon was to start: {answer.get('error')}")

    def leave(self) -> None:
        """End the daemon, if need be by force."""
        if self._daemon is None:
            return
        self._daemon.terminate()
        try:
            self._daemon.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            self._daemon.kill()
            self._daemon.wait()

    def ask(self, *words: str) -> dict[str, Any]:
        """Run a command with --json; answers what it printed, whatever its exit code."""
        answer: dict[str, Any] = json.loads(self._run([*words, "--json"]))
        return answer

    def read(self, *words: str) -> list[str]:
        """Run a command as a person would see it; answers its lines."""
        return [line.rstrip() for line in self._run([*words]).splitlines()]

    def _run(self, words: list[str]) -> str:
        done = subprocess.run(
            [*_TAKEBACK, *words],
            env=self._environ,
            cwd=self._work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
        return done.stdout


@contextmanager
def _later(*signals: signal.Signals) -> Iterator[None]:
    """Keeps these signals back until the body has ended."""
    came: list[int] = []
    before = {each: signal.signal(each, lambda number, frame: came.append(number)) for each in signals}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        for number in came:
            signal.raise_signal(number)
