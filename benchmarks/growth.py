"""What a long log costs: the first page and a preview in 1,000 rows and in 1,000,000."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.measure import Figure, compare, per_call
from benchmarks.records import NotesModule
from takeback import Context, Kernel, moments
from takeback.store import Transaction
from takeback_core.undo import rows
from takeback_core.undo.models import Touched
from takeback_core.undo.module import UndoModule

_FEW, _MANY = 1_000, 1_000_000
_AT_ONCE = 20_000


async def figures() -> list[Figure]:
    """`undo.list` and `undo.preview` of one act, in a long log against a short one."""
    with tempfile.TemporaryDirectory() as folder:
        async with (
            Kernel(Path(folder) / "few", settings={}, modules=[UndoModule, NotesModule]) as few,
            Kernel(Path(folder) / "many", settings={}, modules=[UndoModule, NotesModule]) as many,
        ):
            old = await _fill(few, _FEW), await _fill(many, _MANY)
            short, long = few.enter("cli:person"), many.enter("cli:person")
            taken = await compare(
                {
                    "list few": lambda: _page(short),
                    "list many": lambda: _page(long),
                    "agent few": lambda: _page(short, agent="juno"),
                    "agent many": lambda: _page(long, agent="juno"),
                    "preview few": lambda: _preview(short, old[0]),
                    "preview many": lambda: _preview(long, old[1]),
                },
                rounds=9,
            )
    against = "in 1,000 rows"
    return [
        Figure("undo.list in 1,000,000 rows", taken["list many"], taken["list few"], against, 1.5),
        Figure("undo.list of an agent", taken["agent many"], taken["agent few"], against, 1.5),
        Figure("undo.preview in 1,000,000 rows", taken["preview many"], taken["preview few"], against, 1.5),
    ]


async def _page(ctx: Context, **filters: Any) -> float:
    return await per_call(lambda: ctx.call("undo.list", filters), 50)


async def _preview(ctx: Context, act: str) -> float:
    return await per_call(lambda: ctx.call("undo.preview", {"id": act}), 50)


async def _fill(kernel: Kernel, count: int) -> str:
    """So many acts of two agents; answers the id of one in the middle."""
    middle = ""
    for start in range(0, count, _AT_ONCE):
        numbers = range(start, min(start + _AT_ONCE, count))
        ids = await kernel.store.transaction(lambda tx, numbers=numbers: [_insert(tx, n) for n in numbers])  # type: ignore[misc]
        if start <= count // 2 < start + _AT_ONCE:
            middle = ids[count // 2 - start]
    return middle


def _insert(tx: Transaction, number: int) -> str:
    agent = "juno" if number % 2 else "vega"
    row = {
        "id": rows.new_id(),
        "at": moments.stamp(),
        "actor": f"mcp:agent:{agent}",
        "via": f"mcp:agent:{agent}",
        "recorded_by": "module:notes",
        "actor_kind": "agent",
        "agent": agent,
        "session": f"session-{number // 200}",
        "turn": f"turn-{number // 20}",
        "path": f"boot-{number:x}",
        "role": "act",
        "tool": "notes.put",
        "input": '{"key":"k","value":"v"}',
        "summary": "Changed a note",
        "inverse_tool": "notes.restore",
        "inverse_input": '{"key":"k","value":"w"}',
        "why": "[]",
        "state": "done",
        "tries": 0,
        "pinned": 0,
    }
    touched = [Touched(resource=f"notes:{number:07d}/{part}", before="absent", after="v:1") for part in "ab"]
    rows.insert(tx, row, touched)
    return str(row["id"])
