"""Recording an act, durable before it returns, against appending 600 bytes and syncing them."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import anyio
from pydantic import BaseModel, ConfigDict

from benchmarks.measure import Figure, compare, per_call
from takeback import Caller, Context, Kernel, Manifest, Module, tool
from takeback_core.audit.module import AuditModule
from takeback_core.undo.module import UndoModule

_ACT: dict[str, Any] = {
    "tool": "notes.put",
    "input": {"key": "k" * 20, "value": "v" * 200},
    "summary": "Changed a note",
    "inverse_tool": "notes.restore",
    "inverse_input": {"key": "k" * 20, "value": "w" * 200},
    "touched": [
        {"resource": "notes:one", "before": "v:1", "after": "v:2"},
        {"resource": "notes:two", "before": "absent", "after": "v:2"},
    ],
}


class Restored(BaseModel):
    """Input of an inverse."""

    model_config = ConfigDict(extra="forbid")
    key: str
    value: str


class NotesModule(Module):
    """Owns what the recorded acts touched."""

    manifest: ClassVar[Manifest] = Manifest(1, "notes", "Records acts.", calls=("undo.*",))

    @tool(effect="write", reach=("modules",))
    async def restore(self, ctx: Context, args: Restored) -> Restored:
        """Put a note back."""
        return args


async def figures() -> list[Figure]:
    """`undo.record`, one caller and 64, as a share of the raw rate of append and fdatasync."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        modules = [UndoModule, NotesModule, AuditModule]
        async with Kernel(home, settings={}, modules=modules) as kernel:
            ctx = kernel.enter(Caller.module("notes"))
            record = partial(ctx.call, "undo.record", _ACT)
            raw = os.open(Path(folder) / "raw", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
            try:
                taken = await compare(
                    {
                        "raw": lambda: _raw(raw, 500),
                        "one": lambda: per_call(record, 500),
                        "many": lambda: _at_once(record, callers=64, times=40),
                    },
                    rounds=9,
                )
            finally:
                os.close(raw)
    against = "append 600 B + fdatasync"
    return [
        Figure("undo.record, 1 caller", taken["one"], taken["raw"], against, 0.3, at_least=True),
        Figure("undo.record, 64 callers", taken["many"], taken["raw"], against, 1.5, at_least=True),
    ]


async def _raw(handle: int, times: int) -> float:
    started = time.perf_counter()
    for _ in range(times):
        os.write(handle, b"x" * 600)
        os.fdatasync(handle)
    return (time.perf_counter() - started) / times


async def _at_once(call: Callable[[], Awaitable[object]], *, callers: int, times: int) -> float:
    started = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(callers):
            tasks.start_soon(per_call, call, times)
    return (time.perf_counter() - started) / (callers * times)
