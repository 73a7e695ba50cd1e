"""Writing a file that can be taken back, against the bare durable replacement of the same bytes."""

from __future__ import annotations

import os
import tempfile
import time
from itertools import count
from pathlib import Path

from benchmarks.measure import Figure, compare
from takeback import Kernel
from takeback_acts.files.module import FilesModule
from takeback_core.audit.module import AuditModule
from takeback_core.undo.module import UndoModule

_BYTES = 4096
_TIMES = 150


async def figures() -> list[Figure]:
    """`files.write` of 4 KB through `ctx.call`: pre-image, intent and replacement, all durable."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder).resolve() / "work"
        work.mkdir()
        numbers, path = count(), str(work / "ours")
        modules = [UndoModule, FilesModule, AuditModule]
        async with Kernel(Path(folder) / "home", settings={}, modules=modules) as kernel:
            ctx = kernel.enter("cli:person", session="bench")

            async def ours() -> float:
                started = time.perf_counter()
                for _ in range(_TIMES):
                    await ctx.call("files.write", {"path": path, "content": _text(next(numbers))})
                return (time.perf_counter() - started) / _TIMES

            async def bare() -> float:
                started = time.perf_counter()
                for _ in range(_TIMES):
                    _replace(work, "bare", _text(next(numbers)).encode())
                return (time.perf_counter() - started) / _TIMES

            taken = await compare({"ours": ours, "bare": bare}, rounds=9)
    return [Figure("files.write of 4 KB", taken["ours"], taken["bare"], "temp + fsync + rename + fsync", 3.0)]


def _text(number: int) -> str:
    return f"{number:016d}\n" * (_BYTES // 17)


def _replace(folder: Path, name: str, content: bytes) -> None:
    handle = os.open(folder / "temp", os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600)
    os.write(handle, content)
    os.fsync(handle)
    os.close(handle)
    os.rename(folder / "temp", folder / name)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(opened)
    os.close(opened)
