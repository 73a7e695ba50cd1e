"""The gate: what an agent waits for at each hook, whole processes, against an interpreter that only starts.

A peer's hook is measured on the same events where one is installed beside: `TAKEBACK_PEERS` names the folder
of its commands.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.measure import Figure, Sample, compare
from takeback_doors import hooks

_GATE = Path(hooks.__file__).parent / "gate" / "gate.py"
_FLOOR = [sys.executable, "-I", "-S", "-c", "import _socket"]
_ROUNDS = 31
_NOTHING = {"hook_event_name": "Notification", "session_id": "s"}


class Bench:
    """A daemon over a home of its own, and a repository with one file of 4 KB."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.root = folder / "repo"
        self.root.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)
        self.file = self.root / "notes.txt"
        self.file.write_text("x" * 4096)
        self.environ = {**os.environ, "TAKEBACK_HOME": str(self.home), "TAKEBACK_MCP__PORT": "0"}
        self._takeback = str(Path(sys.executable).with_name("takeback"))
        self.takeback("log")
        places = [str(self.home / "runtime" / "gate.sock"), str(self.home / "data" / "spool")]
        self.gate = [sys.executable, "-I", "-S", str(_GATE), "claude", *places, str(self.home)]
        self._numbers = count()

    def takeback(self, *words: str) -> None:
        """Runs a command of the person's."""
        run([self._takeback, *words], b"", self.environ, self.root)

    def edit(self, command: list[str], environ: dict[str, str]) -> float:
        """Seconds of both hooks around an edit of a file."""
        number = next(self._numbers)
        begin, end = (self._event(name, number) for name in ("PreToolUse", "PostToolUse"))
        taken = run(command, begin, environ, self.root)
        self.file.write_text(f"{number}" + "x" * 4096)
        return taken + run(command, end, environ, self.root)

    def _event(self, name: str, number: int) -> bytes:
        event: dict[str, Any] = {
            "hook_event_name": name,
            "session_id": "s",
            "prompt_id": "p",
            "cwd": str(self.root),
            "tool_name": "Write",
            "tool_use_id": f"t{number}",
            "tool_input": {"file_path": str(self.file), "content": f"{number}"},
        }
        return json.dumps(event).encode()


async def figures() -> list[Figure]:
    """The gate on an event that is nothing to it, on an edit, and a peer's hook on the same edit."""
    with tempfile.TemporaryDirectory(prefix="tb-") as folder:
        bench = Bench(Path(folder).resolve())
        try:
            taken = await compare(dict(_samples(bench)), rounds=_ROUNDS)
        finally:
            bench.takeback("stop")
    found = [
        Figure(
            "gate, an event that is nothing to it", taken["nothing"], taken["floor"], "import _socket", 1.6
        ),
        Figure("gate, before and after an edit", taken["edit"], 2 * taken["nothing"], "two such events", 1.3),
    ]
    if "restory" in taken:
        found.append(
            Figure(
                "gate, before and after an edit",
                taken["edit"],
                taken["restory"],
                "restory",
                10,
                at_least=True,
            )
        )
    return found


def _samples(bench: Bench) -> Iterator[tuple[str, Sample]]:
    nothing = json.dumps(_NOTHING).encode()

    async def floor() -> float:
        return run(_FLOOR, nothing, bench.environ, bench.root)

    async def gate() -> float:
        return run(bench.gate, nothing, bench.environ, bench.root)

    async def edit() -> float:
        return bench.edit(bench.gate, bench.environ)

    yield from (("floor", floor), ("nothing", gate), ("edit", edit))
    peer = Path(os.environ.get("TAKEBACK_PEERS", "/nowhere")) / "restory"
    if peer.exists():
        run([str(peer), "init", "--agent", "claude"], b"", bench.environ, bench.root)
        run([str(peer), "session-start"], b"{}", bench.environ, bench.root)

        async def restory() -> float:
            return bench.edit([str(peer), "hook"], bench.environ)

        yield "restory", restory


def run(command: list[str], given: bytes, environ: dict[str, str], folder: Path) -> float:
    """Seconds of a whole process."""
    started = time.perf_counter()
    subprocess.run(command, input=given, env=environ, cwd=folder, capture_output=True, check=True)
    return time.perf_counter() - started
