"""Beginning: a transaction that pins what values depend on, arms the triggers and looks at the schema.

Each of these would be a way to the server and back. They are one statement, which the server keeps prepared.
"""

from __future__ import annotations

from collections.abc import Mapping

import psycopg

from takeback_acts.rows.dialect import Link
from takeback_acts.rows.postgres import introspection
from takeback_acts.rows.postgres.introspection import PostgresCatalog
from takeback_acts.rows.postgres.link import PostgresLink
from takeback_acts.rows.postgres.triggers import literal
from takeback_acts.rows.postgres.types import SETTINGS

ACT = "takeback"
"""What `takeback.act` is while changes are captured for whom it was not said yet."""

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ"
_NAME = "takeback_begin"
# To set what is set already takes longer than to look: for some, the server asks its operating system.
_PINNED = ", ".join(
    f"CASE WHEN pg_catalog.current_setting({literal(name)}) <> {literal(value)}"
    f" THEN pg_catalog.set_config({literal(name)}, {literal(value)}, true) END"
    for name, value in SETTINGS.items()
)
_ARMED = ", ".join(
    f"pg_catalog.set_config('takeback.{name}', '{value}', true)"
    for name, value in {"act": ACT, "rows": "", "spilt": ""}.items()
)
_LIMITS = ", ".join(
    f"CASE WHEN {mark} IS NOT NULL THEN pg_catalog.set_config('{what}_timeout', {mark}, true) END"
    for what, mark in (("statement", "$1"), ("lock", "$2"))
)


def plainly(link: Link, limits: Mapping[str, float], *, read_only: bool) -> None:
    """Begins a transaction and pins what values depend on. `limits` are seconds by "statement" and "lock"."""
    sql = f"{_BEGIN} {'ONLY' if read_only else 'WRITE'}; SELECT {_PINNED}"
    for what, seconds in limits.items():
        sql += f", pg_catalog.set_config('{what}_timeout', '{_milliseconds(seconds)}', true)"
    _surely(link, sql)


def armed(link: PostgresLink, catalog: PostgresCatalog, limits: Mapping[str, float]) -> None:
    """Begins a transaction in which changes are captured; `link.armed` has what it saw of the schema."""
    given = ", ".join(
        f"'{_milliseconds(limits[what])}'" if what in limits else "NULL" for what in ("statement", "lock")
    )
    sql = f"{_BEGIN} WRITE; EXECUTE {_NAME}({given})"
    for last in (False, True):
        if link.prepared is not catalog:
            _prepare(link, catalog)
        try:
            row = link.execute(sql)[0]
        except psycopg.errors.InvalidSqlStatementName:
            # Whoever is between us and the server gave us another connection of theirs.
            link.execute("ROLLBACK")
            link.prepared = None
            if last:
                raise
        except psycopg.OperationalError:
            if last or link.usable:
                raise
            link.reconnect()
        else:
            link.armed = row[:3]
            return


def _surely(link: Link, sql: str) -> None:
    """On a connection that was lost while nothing was open on it, begins on a new one."""
    try:
        link.execute(sql)
    except psycopg.OperationalError:
        if not isinstance(link, PostgresLink) or link.usable:
            raise
        link.reconnect()
        link.execute(sql)


def _prepare(link: PostgresLink, catalog: PostgresCatalog) -> None:
    stamp = introspection.stamp_sql(catalog.tables.values())
    sql = f"PREPARE {_NAME}(text, text) AS {stamp}, {_PINNED}, {_ARMED}, {_LIMITS}"
    if link.execute(f"SELECT FROM pg_catalog.pg_prepared_statements WHERE name = '{_NAME}'"):
        sql = f"DEALLOCATE {_NAME}; {sql}"
    _surely(link, sql)
    link.prepared = catalog


def _milliseconds(seconds: float) -> str:
    return f"{int(seconds * 1000)}ms"
