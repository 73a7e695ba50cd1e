"""Rows: what it costs that each write to a database can be taken back."""

from __future__ import annotations

from benchmarks import acts, peers, rewinds
from benchmarks.measure import Figure


async def figures() -> list[Figure]:
    """Acts on single rows, then a peer's, then many acts taken back at once."""
    return [*await acts.figures(), *await peers.figures(), *await rewinds.figures()]
