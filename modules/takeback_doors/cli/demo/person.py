"""The person of the demo: real `takeback` commands in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


class Person:
    """Types commands at a terminal, with a home of their own."""

    def __init__(self, home: Path) -> None:
        # No fixed port: the demo must run beside a daemon of the person's own.
        self._environ = {**os.environ, "TAKEBACK_HOME": str(home), "TAKEBACK_MCP__PORT": "0"}

    def ask(self, *words: str) -> dict[str, Any]:
        """Run a command with --json; answers what it printed, whatever its exit code."""
        done = self._run([*words, "--json"], capture=True)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def read(self, *words: str) -> str:
        """Run a command as a person would see it; answers its text."""
        return self._run([*words], capture=True).stdout

    def _run(self, words: list[str], *, capture: bool) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "takeback_doors.cli", *words]
        return subprocess.run(command, env=self._environ, capture_output=capture, text=True, check=False)
