"""Rows: reading and writing many at once, as texts that the database turns into values."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from takeback_acts.rows.dialect import Link
from takeback_acts.rows.postgres.tables import PostgresTable
from takeback_acts.rows.postgres.types import quoted
from takeback_acts.rows.tables import Image, Key, Value

# Rows of one statement: what goes to the server is held in memory three times on the way.
_AT_ONCE = 10_000

_WIDEST = {
    '"pg_catalog"."int2"': (1 << 15) - 2,
    '"pg_catalog"."int4"': (1 << 31) - 2,
    '"pg_catalog"."int8"': (1 << 63) - 2,
}


def read(link: Link, table: PostgresTable, keys: Iterable[Key], *, lock: bool) -> dict[Key, Image]:
    """The rows of these keys; locked in the order of their texts, so that of two who lock one goes first."""
    asked = list(dict.fromkeys(keys))
    if lock:
        asked.sort(key=_texts_of)
    sql = _statement(table, ("read", lock), lambda: _read(table, lock))
    found: dict[Key, Image] = {}
    for part in _parts(asked):
        for row in link.execute(sql, [_array(values) for values in zip(*part, strict=True)]):
            found[part[row[0] - 1]] = row[1:]
    return found


def insert(link: Link, table: PostgresTable, images: Sequence[Image]) -> None:
    """Whole rows, generated columns left out."""
    places = [place for place, column in enumerate(table.columns) if not column.generated]
    sql = _statement(table, "insert", lambda: _insert(table, places))
    for part in _parts(images):
        link.execute(sql, [_array([image[place] for image in part]) for place in places])


def update(link: Link, table: PostgresTable, sets: Sequence[tuple[Key, Mapping[str, Value]]]) -> None:
    """Columns of rows; rows whose columns are the same go together, in the order of the first."""
    alike: dict[tuple[str, ...], list[tuple[Value, ...]]] = {}
    for key, values in sets:
        alike.setdefault(tuple(values), []).append((*key, *values.values()))
    for columns, rows in alike.items():
        if not columns:
            continue
        sql = _statement(table, ("update", columns), partial(_update, table, columns))
        for part in _parts(rows):
            link.execute(sql, [_array(values) for values in zip(*part, strict=True)])


def delete(link: Link, table: PostgresTable, keys: Sequence[Key]) -> None:
    """The rows of these keys."""
    sql = _statement(table, "delete", lambda: _delete(table))
    for part in _parts(keys):
        link.execute(sql, [_array(values) for values in zip(*part, strict=True)])


def defaults(link: Link, table: PostgresTable, columns: Sequence[str]) -> tuple[Value, ...]:
    """What the columns hold when they are not named, as texts."""
    if not columns:
        return ()
    parts = []
    for name in columns:
        place = table.index(name)
        value = table.columns[place].default or "NULL"
        parts.append(
            (f"({value})::{table.columns[place].type} AS {quoted(name)}", table.texts[place].format("d"))
        )
    texts, values = (", ".join(each) for each in ([text for _, text in parts], [value for value, _ in parts]))
    return link.execute(f"SELECT {texts} FROM (SELECT {values}) d")[0]


def spare(table: PostgresTable, column: str, number: int) -> Value:
    """A value for a moment, while rows exchange theirs; None where none is sure to fit the column's type."""
    place = table.index(column)
    kind = table.casts[place]
    widest = _WIDEST.get(kind)
    if widest is not None:
        return str(widest - number)
    if kind == '"pg_catalog"."uuid"':
        return str(uuid.uuid4())
    if table.columns[place].type in ("text", "character varying"):
        return f"takeback-{uuid.uuid4()}"
    return None


def _read(table: PostgresTable, lock: bool) -> str:
    texts = ", ".join(text.format("t") for text in table.texts)
    end = " ORDER BY k.n FOR NO KEY UPDATE OF t" if lock else ""
    return (
        f"SELECT k.n, {texts} FROM {_given(table.key)} WITH ORDINALITY AS k({_names(table.key)}, n)"
        f" JOIN {table.sql} AS t ON {_matching(table)}{end}"
    )


def _insert(table: PostgresTable, places: Sequence[int]) -> str:
    names = [table.columns[place].name for place in places]
    values = ", ".join(_value(table, name, place) for place, name in enumerate(names))
    listed = ", ".join(quoted(name) for name in names)
    return (
        f"INSERT INTO {table.full} ({listed}) OVERRIDING SYSTEM VALUE"
        f" SELECT {values} FROM {_given(names)} AS k({_names(names)})"
    )


def _update(table: PostgresTable, columns: Sequence[str]) -> str:
    names = (*table.key, *columns)
    sets = ", ".join(
        f"{quoted(name)} = {_value(table, name, place)}" for place, name in enumerate(columns, len(table.key))
    )
    return (
        f"UPDATE {table.sql} AS t SET {sets} FROM {_given(names)} AS k({_names(names)})"
        f" WHERE {_matching(table)}"
    )


def _delete(table: PostgresTable) -> str:
    return (
        f"DELETE FROM {table.sql} AS t USING {_given(table.key)} AS k({_names(table.key)})"
        f" WHERE {_matching(table)}"
    )


def _given(columns: Sequence[str]) -> str:
    """The parameters side by side, one for each of the columns."""
    return f"ROWS FROM ({', '.join('pg_catalog.unnest(%s::pg_catalog.text[])' for _ in columns)})"


def _names(columns: Sequence[str]) -> str:
    return ", ".join(f"c{place}" for place in range(len(columns)))


def _value(table: PostgresTable, column: str, place: int) -> str:
    return f"(k.c{place})::{table.casts[table.index(column)]}"


def _matching(table: PostgresTable) -> str:
    return " AND ".join(
        f"t.{quoted(name)} {equal} {_value(table, name, place)}"
        for place, (name, equal) in enumerate(zip(table.key, table.equals, strict=True))
    )


def _statement(table: PostgresTable, which: Any, make: Callable[[], str]) -> str:
    found = table.statements.get(which)
    if found is None:
        found = table.statements[which] = make()
    return found


def _parts(rows: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE))


def _texts_of(key: Key) -> tuple[str, ...]:
    return tuple(map(_text, key))


def _array(values: Sequence[Value]) -> str:
    """An array of texts as PostgreSQL reads it."""
    try:
        joined = '","'.join(values)  # type: ignore[arg-type]
    except TypeError:
        return "{" + ",".join(map(_element, values)) + "}"
    if "\\" in joined or joined.count('"') != 2 * (len(values) - 1):
        return "{" + ",".join(map(_element, values)) + "}"
    return '{"' + joined + '"}'


def _element(value: Value) -> str:
    return "NULL" if value is None else '"' + _text(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _text(value: Value) -> str:
    """A value's text. What a caller gives as a key may be a number."""
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
