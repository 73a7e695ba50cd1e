"""A row of 100,000 changed and given back, against undolith where `TAKEBACK_PEERS` names a folder with it."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks.acts import connected
from benchmarks.databases import Sqlite
from benchmarks.measure import Figure
from takeback import Context

_SCRIPT = Path(__file__).with_name("peer_rows.py")
_ROWS = 100_000
_ROUNDS = 7
_OURS = 9


async def figures() -> list[Figure]:
    """A row changed, and that undone; nothing where the peer is not installed."""
    python = Path(os.environ.get("TAKEBACK_PEERS", "/nowhere")) / "python"
    if not python.with_name("undolith").exists():
        return []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        Sqlite(place / "theirs.db", _ROWS)
        command = [str(python), str(_SCRIPT), str(place / "state"), str(place / "theirs.db")]
        peer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        async with AsyncExitStack() as stack:
            stack.callback(peer.communicate)
            ctx = await connected(stack, place / "home", main=Sqlite(place / "ours.db", _ROWS))
            ours, theirs = await _compare(ctx, peer)
    what = f"in {_ROWS:,} rows"
    return [
        Figure(f"one row changed {what}", ours[0], theirs[0], "undolith", 50, at_least=True),
        Figure(f"one row given back {what}", ours[1], theirs[1], "undolith", 50, at_least=True),
    ]


async def _compare(ctx: Context, peer: subprocess.Popen[str]) -> tuple[list[float], list[float]]:
    """Medians of the seconds for an update and for its undo: ours and the peer's, by turns."""
    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    for _ in range(_ROUNDS):
        theirs.append(_theirs(peer))
        ours += [await _ours(ctx, len(ours)) for _ in range(_OURS)]
    return [*map(statistics.median, zip(*ours, strict=True))], [
        *map(statistics.median, zip(*theirs, strict=True))
    ]


def _theirs(peer: subprocess.Popen[str]) -> tuple[float, float]:
    assert peer.stdin is not None
    assert peer.stdout is not None
    peer.stdin.write("again\n")
    peer.stdin.flush()
    acted, undone = map(float, peer.stdout.readline().split())
    return acted, undone


async def _ours(ctx: Context, number: int) -> tuple[float, float]:
    started = time.perf_counter()
    args = {"table": "skill", "key": number * 7919 % _ROWS, "set": {"title": f"set {number}"}}
    done = await ctx.call("rows.update", args)
    acted = time.perf_counter()
    await ctx.call("undo.run", {"id": done.act})
    return acted - started, time.perf_counter() - acted
