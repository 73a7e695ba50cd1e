"""Effects: what taking back does to each row and column, in words that a plan is made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from takeback_acts.rows.tables import Key

Action = Literal["restore", "delete", "merge", "skip", "conflict", "gone"]

AGAINST = ("conflict", "gone")


class Effect(NamedTuple):
    """One column of one row, or the row as a whole where `column` is "".

    `entry` is the journal's id of what is taken back. For a conflict, `base` is what that left, `ours` what
    it would become again, `theirs` what is there now: values, or for a whole row {column: value} of what
    differs. `constraint` names what the database would refuse.
    """

    entry: str
    table: str
    key: Key
    column: str
    action: Action
    reason: str = ""
    base: Any = None
    ours: Any = None
    theirs: Any = None
    constraint: str = ""


def clean(effects: Iterable[Effect]) -> bool:
    """Whether nothing stands against it."""
    return all(effect.action not in AGAINST for effect in effects)
