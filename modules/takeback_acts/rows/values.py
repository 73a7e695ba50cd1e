"""Values: from what JSON can say to what a database takes, and back."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from takeback.errors import UsageError
from takeback_acts.rows import models, told
from takeback_acts.rows.tables import Column, Image, Key, Table

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def encode(engine: str, value: models.Value, where: str) -> Any:
    """A value as the driver takes it; on PostgreSQL its text, which the column then reads.

    Raises UsageError `rows.unfit`, which names `where` and not the value.
    """
    given = _bytes(value, where) if isinstance(value, models.Binary) else value
    if isinstance(given, float) and math.isnan(given) and engine == "sqlite":
        raise told.unfit(f"{where} can't be NaN")
    if isinstance(given, str):
        _require_text(given, where, nul=engine == "sqlite")
    return _for_sqlite(given, where) if engine == "sqlite" else _for_postgresql(given)


def decode(engine: str, value: Any, column: Column) -> Any:
    """A value of the database as JSON has it; what JSON has no form for is text, bytes are `{"base64"}`."""
    if engine == "postgresql" and isinstance(value, str):
        reader = _READERS.get(column.type)
        return value if reader is None else reader(value)
    if isinstance(value, bytes | memoryview):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, float) and not math.isfinite(value):
        return _infinite(value)
    return value


def named(engine: str, table: Table, key: Key) -> dict[str, Any]:
    """A key by its columns' names, as JSON."""
    columns = [table.columns[table.index(name)] for name in table.key]
    return {one.name: decode(engine, value, one) for one, value in zip(columns, key, strict=True)}


def row(engine: str, columns: Sequence[Column], image: Image) -> dict[str, Any]:
    """A row by its columns' names, as JSON."""
    return {one.name: decode(engine, value, one) for one, value in zip(columns, image, strict=True)}


def _bytes(value: models.Binary, where: str) -> bytes:
    try:
        return base64.b64decode(value.base64, validate=True)
    except (binascii.Error, ValueError):
        raise told.unfit(f"{where} is no base64") from None


def _require_text(text: str, where: str, *, nul: bool) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise told.unfit(f"{where} has half a character (a lone surrogate)") from None
    if not nul and "\0" in text:
        raise told.unfit(f"{where} has a NUL, which text of PostgreSQL can't hold")


def _for_sqlite(value: Any, where: str) -> Any:
    if isinstance(value, int) and not _LEAST <= value <= _MOST:
        raise told.unfit(f"{where} is beyond 64 bits")
    return int(value) if isinstance(value, bool) else value


def _for_postgresql(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return _infinite(value)
    return repr(value) if isinstance(value, float) else str(value)


def _infinite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _float(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


def _hex(text: str) -> Any:
    data = bytes.fromhex(text[2:])
    return {"base64": base64.b64encode(data).decode("ascii")}


_READERS: Mapping[str, Callable[[str], Any]] = {
    "smallint": int,
    "integer": int,
    "bigint": int,
    "boolean": lambda text: text in ("t", "true"),
    "real": _float,
    "double precision": _float,
    "bytea": _hex,
}


def key_of(engine: str, table: Table, given: dict[str, models.Value] | models.Value) -> Key:
    """The key that a caller gave, in the order of the table's; raises UsageError `rows.key`, `rows.unfit`."""
    if not isinstance(given, dict):
        given = {table.key[0]: given} if len(table.key) == 1 else {}
    if given.keys() != set(table.key):
        raise UsageError(
            "rows.key",
            f"The key of {table.name:.300} is {', '.join(table.key)}"[:500],
            "Give each column of it, and no other.",
        )
    if any(value is None for value in given.values()):
        raise UsageError("rows.key", f"No key of {table.name:.300} is null", "Give the key of a row.")
    return tuple(encode(engine, given[name], f"{table.name}.{name}") for name in table.key)
