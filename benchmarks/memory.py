"""The daemon at rest: what it holds in memory, and what each module adds. Reported, not bounded."""

from __future__ import annotations

import subprocess
import sys
import tempfile

from benchmarks.measure import Figure

# In the order in which they start, so that each line is what one module adds to those before it.
_MODULES = (
    "takeback_core.undo.module:UndoModule",
    "takeback_core.agents.module:AgentsModule",
    "takeback_core.audit.module:AuditModule",
    "takeback_acts.files.module:FilesModule",
    "takeback_doors.cli.module:CliModule",
    "takeback_doors.mcp.module:McpModule",
)
_SCRIPT = """
import anyio, gc, sys
from importlib import import_module
from takeback import Kernel

async def main(home, names):
    modules = [getattr(import_module(n.split(":")[0]), n.split(":")[1]) for n in names]
    async with Kernel(home, settings={"mcp": {"port": 0}}, modules=modules) as kernel:
        gc.collect()
        status = await kernel.enter("cli:person").kernel.status()
        print(status.memory_kib)

anyio.run(main, sys.argv[1], sys.argv[2:])
"""


async def figures() -> list[Figure]:
    """Print the resident memory with one module more each time."""
    before = 0
    for count in range(len(_MODULES) + 1):
        held = _held(_MODULES[:count])
        name = _MODULES[count - 1].split(".")[1] if count else "kernel"
        print(f"       {held / 1024:8.1f} MiB with {name}: {(held - before) / 1024:+.1f} MiB")
        before = held
    return []


def _held(modules: tuple[str, ...]) -> int:
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-c", _SCRIPT, home, *modules]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return int(done.stdout)
