"""Rules: what the person declares of their tables, because no database tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Rules:
    """By table: columns that conflict together, counters, and what the database or an app computes.

    `groups`: columns that mean something only together, amount and currency. `deltas`: numbers of which only
    the difference is given back. `derived`: columns never compared, and never promised. `outside`: tables
    neither journaled nor looked at, for what triggers write of every change.
    """

    groups: Mapping[str, tuple[frozenset[str], ...]] = field(default_factory=dict)
    deltas: Mapping[str, frozenset[str]] = field(default_factory=dict)
    derived: Mapping[str, frozenset[str]] = field(default_factory=dict)
    outside: frozenset[str] = frozenset()
