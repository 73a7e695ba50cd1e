"""Who acted, in a word."""

from __future__ import annotations

from typing import Any


def who(act: dict[str, Any]) -> str:
    """Whoever did an act."""
    if act["actor_kind"] == "person":
        return "you"
    return str(act.get("agent") or called(act["actor"]))


def called(label: str) -> str:
    """Whoever has a label."""
    return "you" if label.split(":")[1:2] == ["person"] else label.rpartition(":")[2]
