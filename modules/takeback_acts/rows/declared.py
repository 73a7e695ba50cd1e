"""What the person declares of their tables in the settings, as the journal takes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from takeback_acts.rows.rules import Rules
from takeback_acts.rows.settings import RowsSettings


def rules(settings: RowsSettings, database: str) -> Rules:
    """The rules of one database."""
    return Rules(
        groups=_groups(settings.together, database),
        deltas=_columns(settings.counters, database),
        derived=_columns(settings.derived, database),
        outside=outside(settings, database),
    )


def outside(settings: RowsSettings, database: str) -> frozenset[str]:
    """The tables of a database that triggers write to, and no undo looks at."""
    return frozenset(_of(settings.outside, database))


def _of(written: Sequence[str], database: str) -> Iterator[str]:
    """What is written of a database, without its name."""
    for one in written:
        name, _, rest = one.partition(".")
        if name == database:
            yield rest


def _columns(written: Sequence[str], database: str) -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for one in _of(written, database):
        table, _, column = one.rpartition(".")
        found.setdefault(table, set()).add(column)
    return {table: frozenset(columns) for table, columns in found.items()}


def _groups(written: Sequence[str], database: str) -> Mapping[str, tuple[frozenset[str], ...]]:
    found: dict[str, list[frozenset[str]]] = {}
    for one in _of(written, database):
        table, _, columns = one.rpartition(".{")
        names = frozenset(name.strip() for name in columns.removesuffix("}").split(","))
        found.setdefault(table, []).append(names)
    return {table: tuple(groups) for table, groups in found.items()}
