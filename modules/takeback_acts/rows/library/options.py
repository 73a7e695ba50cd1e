"""Options: what an app declares of its tables, made into the engine's rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from takeback.errors import UsageError
from takeback_acts.rows.rules import Rules

Columns = Mapping[str, Collection[str]]


def rules(
    groups: Mapping[str, Collection[Collection[str]]] | None,
    deltas: Columns | None,
    derived: Columns | None,
    ignore: Iterable[str],
) -> Rules:
    """The rules. Raises UsageError `journal.rules` where a name stands for a list of names."""
    return Rules(
        groups={
            table: tuple(_names("groups", table, each) for each in _listed("groups", table, sets))
            for table, sets in (groups or {}).items()
        },
        deltas={table: _names("deltas", table, columns) for table, columns in (deltas or {}).items()},
        derived={table: _names("derived", table, columns) for table, columns in (derived or {}).items()},
        outside=_names("ignore", "tables", list(ignore) if not isinstance(ignore, str) else ignore),
    )


def _names(option: str, table: str, given: Collection[str]) -> frozenset[str]:
    names = _listed(option, table, given)
    if not all(isinstance(name, str) for name in names):
        raise _wrong(option, table)
    return frozenset(names)


def _listed(option: str, table: str, given: Collection[str] | Collection[Collection[str]]) -> list[str]:
    if isinstance(given, str) or not isinstance(given, Collection):
        raise _wrong(option, table)
    return list(given)  # type: ignore[arg-type]


def _wrong(option: str, table: str) -> UsageError:
    return UsageError(
        "journal.rules",
        f"`{option}` of {table} is no list of names.",
        'Write deltas={"account": ["balance"]}, groups={"price": [["amount", "currency"]]}.',
    )
