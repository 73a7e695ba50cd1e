"""Taking back a session that changed a thousand files, against git's checkout of them and a sync."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path

from benchmarks.measure import Figure, compare
from takeback import Kernel
from takeback.context import Context
from takeback_acts.files.capture.gitkeep import environment
from takeback_acts.files.module import FilesModule
from takeback_core.audit.module import AuditModule
from takeback_core.undo.module import UndoModule

_FILES = 1000
_IN_A_FOLDER = 50
_LINES = 80


async def figures() -> list[Figure]:
    """One command changes every file of a repository; the undo of its session, durable."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        work = place / "work"
        paths = _make(work)
        rounds = count(1)
        modules = [UndoModule, FilesModule, AuditModule]
        async with Kernel(place / "home", settings={}, modules=modules) as kernel:

            async def ours() -> float:
                ctx = kernel.enter("cli:person", session=f"round {next(rounds)}")
                await _command(ctx, work, paths)
                started = time.perf_counter()
                await ctx.call("undo.rewind", {"session": ctx.session})
                taken = time.perf_counter() - started
                _require_first(paths)
                return taken

            async def git() -> float:
                _change(paths)
                started = time.perf_counter()
                subprocess.run(
                    ["git", "checkout-index", "-f", "-z", "--stdin"],
                    cwd=work,
                    check=True,
                    env=environment(),
                    input=b"\0".join(os.fsencode(path.relative_to(work)) for path in paths),
                )
                subprocess.run(["sync"], check=True)
                taken = time.perf_counter() - started
                _require_first(paths)
                return taken

            taken = await compare({"ours": ours, "git": git}, rounds=5)
    what = f"session undo of {_FILES} changed files"
    return [Figure(what, taken["ours"], taken["git"], "git checkout-index + sync", 2.0)]


async def _command(ctx: Context, work: Path, paths: list[Path]) -> None:
    begun = await ctx.call(
        "files.begin_command", {"roots": [str(work)], "cwd": str(work), "command": ["sed"]}
    )
    _change(paths)
    await ctx.call("files.end_command", {"window": begun.window, "exit_code": 0})


def _make(work: Path) -> list[Path]:
    paths = [work / f"f{n // _IN_A_FOLDER}" / f"file{n}.txt" for n in range(_FILES)]
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_text(number))
    for command in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=b", "-c", "user.email=b", "commit", "-qm", "b"],
    ):
        subprocess.run(["git", *command], cwd=work, check=True, env=environment())
    return paths


def _text(number: int) -> str:
    return "".join(f"line {line} of file {number}, as it was before\n" for line in range(_LINES))


def _change(paths: list[Path]) -> None:
    for path in paths:
        path.write_text(path.read_text().replace("line 7 ", "Line seven "))


def _require_first(paths: list[Path]) -> None:
    for number, path in enumerate(paths):
        if path.read_text() != _text(number):
            raise RuntimeError(f"{path.name} is not as it was before")
