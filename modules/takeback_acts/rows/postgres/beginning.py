"""Beginning: a transaction that pins what values depend on, arms the triggers and looks at the schema.

Each of these would be a way to the server and back. They are one statement, which goes along with BEGIN.
"""

from __future__ import annotations

from collections.abc import Mapping

import psycopg

from takeback_acts.rows.dialect import Link
from takeback_acts.rows.postgres import stamps
from takeback_acts.rows.postgres.link import PostgresLink
from takeback_acts.rows.postgres.tables import PostgresCatalog
from takeback_acts.rows.postgres.triggers import COLLECT, literal
from takeback_acts.rows.postgres.types import SETTINGS

ACT = "takeback"
"""What `takeback.act` is while changes are captured for whom it was not said yet."""

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ"


def _set(name: str, value: str) -> str:
    return f"pg_catalog.set_config({literal(name)}, {value}, true)"


# To set what is set already takes longer than to look: for some, the server asks its operating system.
_LOOK = ", ".join(f"pg_catalog.current_setting({literal(name)})" for name in SETTINGS)
_PIN = ", ".join(_set(name, literal(value)) for name, value in SETTINGS.items())
_PINNED = (
    f"CASE WHEN pg_catalog.concat({_LOOK}) <> {literal(''.join(SETTINGS.values()))}"
    f" THEN pg_catalog.concat({_PIN}) END"
)
_ARMED = ", ".join(
    _set(f"takeback.{name}", literal(value)) for name, value in {"act": ACT, "rows": "", "spilt": ""}.items()
)


def plainly(link: Link, limits: Mapping[str, float], *, read_only: bool) -> None:
    """Begins a transaction and pins what values depend on. `limits` are seconds by "statement" and "lock"."""
    set_up = ", ".join([_PINNED, *_limited(limits)])
    sql = f"{_BEGIN} {'ONLY' if read_only else 'WRITE'}; SELECT {set_up}"
    try:
        link.execute(sql)
    except psycopg.OperationalError:
        if not _renewed(link):
            raise
        link.execute(sql)


def armed(link: PostgresLink, catalog: PostgresCatalog, limits: Mapping[str, float]) -> None:
    """Begins a transaction in which changes are captured; `link.armed` has what it saw of the schema."""
    which = ("begin", *limits.items())
    sql = catalog.statements.get(which)
    if sql is None:
        stamp = stamps.stamp_sql(catalog.tables.values())
        set_up = ", ".join([_ARMED, _PINNED, *_limited(limits)])
        sql = catalog.statements[which] = f"{stamp}, pg_catalog.concat({set_up})"
    # What runs at COMMIT has not run yet when the statement that caused it has.
    asked = "" if catalog.late else COLLECT
    try:
        link.begin(f"{_BEGIN} WRITE", sql, asked)
    except psycopg.OperationalError:
        if not _renewed(link):
            raise
        link.begin(f"{_BEGIN} WRITE", sql, asked)


def _renewed(link: Link) -> bool:
    """A connection that was lost while nothing was open on it is made anew."""
    if not isinstance(link, PostgresLink) or link.usable:
        return False
    link.reconnect()
    return True


def _limited(limits: Mapping[str, float]) -> list[str]:
    return [_set(f"{what}_timeout", f"'{int(seconds * 1000)}ms'") for what, seconds in limits.items()]
