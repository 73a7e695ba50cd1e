"""Plans: what a rewind will do, row by row and in words, from the very run that would do it."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Operation = Literal["insert", "update", "delete"]


@dataclass(frozen=True, slots=True)
class Row:
    """One row that changes: `before` and `after` are its values by column, None where there is no row.

    Of an update they have the columns that it sets. In a plan, `before` is what is there now.
    """

    table: str
    key: Mapping[str, Any]
    operation: Operation
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None

    def as_dict(self) -> dict[str, Any]:
        """JSON values; bytes are {"base64": text}."""
        return {
            "table": self.table,
            "key": _json(self.key),
            "operation": self.operation,
            "before": _json(self.before),
            "after": _json(self.after),
        }


@dataclass(frozen=True, slots=True)
class Item:
    """How many rows of a table change in one way, and the sentence for it."""

    table: str
    operation: Operation
    count: int
    phrase: str

    def as_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "table": self.table,
            "operation": self.operation,
            "count": self.count,
            "phrase": self.phrase,
        }


@dataclass(frozen=True, slots=True)
class Conflict:
    """What stands against taking an act back: a column of a row, or the row as a whole where `column` is "".

    `base` is what the act left, `ours` what it would become again, `theirs` what is there now. `constraint`
    names what the database would refuse, or what would change more than was asked for.
    """

    table: str
    key: Mapping[str, Any]
    column: str
    base: Any
    ours: Any
    theirs: Any
    reason: str
    constraint: str

    def place(self) -> dict[str, Any]:
        """Which one it is, without anybody's values."""
        return {
            "table": self.table,
            "column": self.column,
            "reason": self.reason,
            "constraint": self.constraint,
        }

    def as_dict(self) -> dict[str, Any]:
        """JSON values."""
        values = {"key": self.key, "base": self.base, "ours": self.ours, "theirs": self.theirs}
        return self.place() | {name: _json(value) for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Plan:
    """What taking back comes to. With conflicts it comes to nothing, unless they are skipped or overwritten.

    `acts` are the journal's ids of what is taken back, newest first. `skipped` are conflicts that are left
    as they are. `expired`: some of what was done is older than the journal keeps, and stays.
    """

    items: tuple[Item, ...]
    rows: tuple[Row, ...]
    conflicts: tuple[Conflict, ...]
    acts: tuple[str, ...]
    digest: str
    expired: bool = False
    skipped: tuple[Conflict, ...] = ()

    @property
    def total(self) -> int:
        """How many rows change."""
        return len(self.rows)

    @property
    def clean(self) -> bool:
        """Whether nothing stands against it."""
        return not self.conflicts

    def as_dict(self, *, rows: bool = True) -> dict[str, Any]:
        """JSON values; the rows only if they are wanted."""
        made: dict[str, Any] = {
            "items": [item.as_dict() for item in self.items],
            "total": self.total,
            "conflicts": [conflict.as_dict() for conflict in self.conflicts],
            "skipped": [conflict.as_dict() for conflict in self.skipped],
            "acts": list(self.acts),
            "digest": self.digest,
            "expired": self.expired,
        }
        return made | {"rows": [row.as_dict() for row in self.rows]} if rows else made


@dataclass(frozen=True, slots=True)
class Rewound:
    """What was taken back, and under which id it can be done again; that is "" when there was nothing."""

    undo: str
    undone: tuple[str, ...]
    plan: Plan = field(repr=False)


def digest(acts: tuple[str, ...], rows: tuple[Row, ...], conflicts: tuple[Conflict, ...]) -> str:
    """32 hex digits that are the same for the same acts with the same outcome."""
    lines = sorted(_line(row.as_dict()) for row in rows)
    against = sorted(_line(conflict.as_dict()) for conflict in conflicts)
    text = _line([list(acts), lines, against])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def items(rows: tuple[Row, ...], names: Mapping[str, tuple[str, str]]) -> tuple[Item, ...]:
    """The rows counted by table and operation, in the order in which they come."""
    counts = Counter((row.table, row.operation) for row in rows)
    return tuple(
        Item(table, operation, count, _phrase(table, operation, count, names))
        for (table, operation), count in counts.items()
    )


_VERBS: Mapping[Operation, str] = {
    "insert": "will come back",
    "update": "will revert",
    "delete": "will be deleted",
}


def _phrase(table: str, operation: Operation, count: int, names: Mapping[str, tuple[str, str]]) -> str:
    singular, plural = names.get(table) or _named(table)
    return f"{count} {singular if count == 1 else plural} {_VERBS[operation]}"


def _named(table: str) -> tuple[str, str]:
    """One and several, from the name of a table in either."""
    words = table.rpartition(".")[2].replace("_", " ").strip()
    if words.endswith("ies") and len(words) > 4:
        return f"{words[:-3]}y", words
    if words.endswith(("sses", "shes", "ches", "xes", "zes")):
        return words[:-2], words
    if words.endswith("s") and not words.endswith(("ss", "us", "is")):
        return words[:-1], words
    if words.endswith("y") and words[-2:-1] not in ("a", "e", "i", "o", "u", ""):
        return words, f"{words[:-1]}ies"
    return words, f"{words}es" if words.endswith(("s", "x", "z", "ch", "sh")) else f"{words}s"


def _json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _json(each) for name, each in value.items()}
    if isinstance(value, bytes | memoryview):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
