"""The command line with a daemon running: whole processes, against an interpreter that only imports."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Figure, compare

_FLOOR = [sys.executable, "-I", "-c", "import json, socket"]


async def figures() -> list[Figure]:
    """`takeback log --json` with 50 acts in the log."""
    command = [str(Path(sys.executable).with_name("takeback")), "log", "--json"]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder).resolve() / "work"
        work.mkdir()
        environment = {**os.environ, "TAKEBACK_HOME": f"{folder}/home", "TAKEBACK_MCP__PORT": "0"}
        try:
            for number in range(50):
                given = f'{{"path": "{work}/{number}", "content": "x"}}'
                _run([command[0], "tools", "call", "files.write", given, "--json"], environment)

            async def ours() -> float:
                return _timed(command, environment)

            async def floor() -> float:
                return _timed(_FLOOR, environment)

            taken = await compare({"ours": ours, "floor": floor}, rounds=21)
        finally:
            _run([command[0], "stop"], environment)
    against = "python -I -c 'import json, socket'"
    return [Figure("takeback log --json, whole process", taken["ours"], taken["floor"], against, 3.0)]


def _timed(command: list[str], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    _run(command, environment)
    return time.perf_counter() - started


def _run(command: list[str], environment: dict[str, str]) -> None:
    subprocess.run(command, env=environment, capture_output=True, check=True)
