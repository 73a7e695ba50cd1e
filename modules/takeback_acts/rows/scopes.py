"""Scopes: which tables an agent may touch, and which columns no agent sees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from takeback.context import Scope
from takeback.errors import RefusedError
from takeback_acts.rows.tables import Table


def sees(scope: Scope | None, database: str) -> bool:
    """Whether a caller may know that a database is there: some table of it was granted."""
    return scope is None or any(pattern.startswith(f"{database}.") for pattern in scope.tables)


def holds(scope: Scope | None, database: str, table: str) -> bool:
    """Whether a table may be touched: granted by name, or with all of its database or schema."""
    if scope is None:
        return True
    schema = table.rpartition(".")[0]
    granted = {f"{database}.{table}", f"{database}.*", f"{database}.{schema}.*"}
    return not granted.isdisjoint(scope.tables)


def require(scope: Scope | None, database: str, tables: Iterable[str]) -> None:
    """Raises RefusedError `scope.outside` for the first table that may not be touched."""
    for table in tables:
        if not holds(scope, database, table):
            raise RefusedError(
                "scope.outside",
                f"{database}.{table:.300} is not among the tables that were granted",
                f"Ask the person to grant it: `takeback agents grant NAME --table {database}.TABLE`.",
            )


class Hidden:
    """The columns that no agent sees, by database and table; their case makes no difference."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns: dict[tuple[str, str], set[str]] = {}
        for written in columns:
            database, _, rest = written.partition(".")
            table, _, column = rest.lower().rpartition(".")
            self._columns.setdefault((database, table), set()).add(column)

    def of(self, scope: Scope | None, database: str, table: Table) -> frozenset[str]:
        """The columns of a table that a caller may not see; none are hidden from who has no scope.

        What a row is known by can't be hidden: it is in the name of every resource.
        """
        if scope is None or not self._columns:
            return frozenset()
        hidden = self._columns.get((database, table.name.lower()), set())
        return frozenset(name for name in table.names if name.lower() in hidden and name not in table.key)

    def require_none(self, scope: Scope | None, database: str, tables: Iterable[Table]) -> None:
        """Raises RefusedError `rows.hidden` when a table has columns that the caller may not see."""
        for table in tables:
            if self.of(scope, database, table):
                raise RefusedError(
                    "rows.hidden",
                    f"{database}.{table.name:.300} has columns that agents do not see",
                    "No statement may name it; rows.query, rows.insert, rows.update and rows.delete may.",
                )

    def require_shown(self, scope: Scope | None, database: str, table: Table, columns: Iterable[str]) -> None:
        """Raises RefusedError `rows.hidden` for a column that the caller may not see."""
        for column in sorted(self.of(scope, database, table) & set(columns)):
            raise RefusedError(
                "rows.hidden",
                f"{database}.{table.name:.300} has no column {column:.100} for agents",
                "Leave it out; only the person sees it.",
            )
