"""Tables: what of a database an agent may touch, checked for its form when the person grants it."""

from __future__ import annotations

from takeback.callers import is_name
from takeback.errors import UsageError

_LONGEST = 300


def resolve(table: str) -> str:
    """A table to grant as it is stored; raises UsageError `agent.table`.

    Whether there is such a table is not asked: it may be made later, or its database connected later.
    """
    database, dot, name = table.partition(".")
    if not dot or not is_name(database) or not _is_table(name):
        raise UsageError(
            "agent.table",
            f"{table!r:.200} names no table of a connected database",
            "Write DATABASE.TABLE, or DATABASE.* for all of its tables.",
        )
    return table


def _is_table(name: str) -> bool:
    """Whether it can be a table's name, which is its own text in a database, or `*` for many."""
    if not 0 < len(name) <= _LONGEST or not name.isprintable():
        return False
    return "*" not in name or name == "*" or (name.endswith(".*") and "*" not in name[:-1])
