"""Statements: the SQL of one table, made once."""

from __future__ import annotations

from collections.abc import Callable

from takeback_acts.rows.sqlite.introspection import SqliteTable


def quoted(name: str) -> str:
    """A name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def select(table: SqliteTable, count: int) -> str:
    """The rows of so many keys."""
    return _kept(table, ("select", count), lambda: _select(table, count))


def insert(table: SqliteTable) -> str:
    """A whole row but for what the database computes."""
    return _kept(table, "insert", lambda: _insert(table))


def update(table: SqliteTable, columns: tuple[str, ...]) -> str:
    """Some columns of the row of a key."""
    return _kept(table, ("update", columns), lambda: _update(table, columns))


def delete(table: SqliteTable) -> str:
    """The row of a key."""
    return _kept(table, "delete", lambda: f"DELETE FROM main.{quoted(table.name)} WHERE {_key(table)}")


def _kept(table: SqliteTable, what: object, make: Callable[[], str]) -> str:
    text = table.texts.get(what)
    if text is None:
        text = table.texts[what] = make()
    return text


def _select(table: SqliteTable, count: int) -> str:
    # An expression has no declared type, by which the driver of an app might convert what is stored.
    columns = ", ".join(f"+{quoted(name)}" for name in table.names)
    sides = [quoted(name) + collate(table, name) for name in table.key]
    if len(sides) == 1:
        where = f"{sides[0]} IN ({', '.join('?' * count)})"
    elif count == 1:
        where = _key(table)
    else:
        one = f"({', '.join('?' * len(sides))})"
        where = f"({', '.join(sides)}) IN (VALUES {', '.join([one] * count)})"
    return f"SELECT {columns} FROM main.{quoted(table.name)} WHERE {where}"


def _insert(table: SqliteTable) -> str:
    names = [column.name for column in table.writable]
    columns = ", ".join(map(quoted, names))
    return (
        f"INSERT{_or(table)} INTO main.{quoted(table.name)} ({columns})"
        f" VALUES ({', '.join('?' * len(names))})"
    )


def _update(table: SqliteTable, columns: tuple[str, ...]) -> str:
    sets = ", ".join(f"{quoted(name)} = ?" for name in columns)
    return f"UPDATE{_or(table)} main.{quoted(table.name)} SET {sets} WHERE {_key(table)}"


def _or(table: SqliteTable) -> str:
    """What a broken constraint does. One that replaces rows, or passes them over, must fail when something is
    given back; but what is said here decides for the person's triggers too, so with them no more is said.

    A row is checked before it is written, and FAIL spares SQLite to keep, for every statement within a
    savepoint, all the pages that it writes.
    """
    if not table.triggered:
        return " OR FAIL"
    return " OR ABORT" if table.resolves else ""


def _key(table: SqliteTable) -> str:
    return " AND ".join(f"{quoted(name)}{collate(table, name)} = ?" for name in table.key)


def collate(table: SqliteTable, name: str) -> str:
    """What makes a column of the key compare as the key does."""
    collation = table.columns[table.index(name)].collation
    return f" COLLATE {collation}" if collation else ""
