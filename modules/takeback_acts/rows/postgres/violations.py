"""Violations: which constraint an error of PostgreSQL's speaks of."""

from __future__ import annotations

from collections.abc import Mapping

from takeback_acts.rows.dialect import Kind, Violation
from takeback_acts.rows.postgres.tables import DEFAULT_SCHEMA, PostgresCatalog, PostgresTable

_KINDS: Mapping[str, Kind] = {
    "23505": "unique",
    "23503": "foreign_key",
    "23001": "foreign_key",
    "23514": "check",
    "23502": "not_null",
    "23P01": "exclusion",
}


def violation(error: BaseException, catalog: PostgresCatalog | None) -> Violation | None:
    """The constraint by name, with its columns where the catalog has them; None when the error is another."""
    state = getattr(error, "sqlstate", None)
    diagnosis = getattr(error, "diag", None)
    if not isinstance(state, str) or not state.startswith("23") or diagnosis is None:
        return None
    kind = _KINDS.get(state, "other")
    columns: tuple[str, ...]
    schema, relation = diagnosis.schema_name or "", diagnosis.table_name or ""
    table = _named(schema, relation, catalog)
    constraint = diagnosis.constraint_name or ""
    if kind == "not_null":
        columns = (diagnosis.column_name,) if diagnosis.column_name else ()
    else:
        columns = _columns(table, constraint, catalog)
    return Violation(kind, constraint, table, columns)


def _named(schema: str, relation: str, catalog: PostgresCatalog | None) -> str:
    if catalog is not None and (schema, relation) in catalog.relations:
        return catalog.relations[schema, relation]
    return f"{schema}.{relation}" if schema and schema != DEFAULT_SCHEMA else relation


def _columns(name: str, constraint: str, catalog: PostgresCatalog | None) -> tuple[str, ...]:
    table = catalog.tables.get(name) if catalog is not None else None
    if table is None:
        return ()
    for unique in table.uniques:
        if unique.name == constraint:
            return unique.columns
    for reference in table.foreign_keys:
        if reference.name == constraint:
            return reference.columns
    return table.key if isinstance(table, PostgresTable) and constraint == table.key_name else ()
