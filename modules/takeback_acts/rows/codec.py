"""Codec: changes of rows as text, and back without a difference."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from takeback.errors import TakebackError
from takeback_acts.rows.changes import Change
from takeback_acts.rows.tables import Image, Table

Line: TypeAlias = "list[Any]"


def encode(changes: Iterable[Change], tables: Mapping[str, Table]) -> str:
    """The changes as JSON: a list of lines. [table, null, after] is an insert, [table, before, null] a
    delete, and [table, before, places, values] an update that set the columns at these places.

    What JSON has no word for is tagged: bytes {"x": hex}, and {"f": "inf"}, "-inf" or "nan".
    """
    lines = [_line(change, tables) for change in changes]
    try:
        return _ENCODER.encode(lines)
    except ValueError:
        return _ENCODER.encode([[_tagged(part) for part in line] for line in lines])


def decode(text: str) -> list[Change]:
    """What `encode` was given."""
    with reading():
        return [Change(line[0], *images(line)) for line in _DECODER.decode(text)]


@contextmanager
def reading() -> Iterator[None]:
    """Within it an entry is read that somebody may have changed. Raises TakebackError
    `rows.entry_damaged`."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise TakebackError(
            "rows.entry_damaged",
            "An entry of the journal in the database can't be read: it was changed there, or is damaged.",
            "Nothing was changed. That act can't be taken back; others can, one by one.",
        ) from error


def decode_all(texts: Sequence[str]) -> list[list[Line]]:
    """The lines of each text, not yet made into images; much faster than one after the other."""
    decoded: list[list[Line]] = _DECODER.decode("[" + ",".join(texts) + "]")
    return decoded


def images(line: Line) -> tuple[Image | None, Image | None]:
    """The images of a line."""
    if len(line) == 3:
        _, before, after = line
        return (None if before is None else tuple(before), None if after is None else tuple(after))
    _, before, places, values = line
    made = list(before)
    for place, value in zip(places, values, strict=True):
        made[place] = value
    return tuple(before), tuple(made)


def _line(change: Change, tables: Mapping[str, Table]) -> Line:
    name, before, after = change
    if before is None or after is None:
        return [name, before, after]
    places = tables[name].differing(before, after)
    return [name, before, places, [after[place] for place in places]]


def _tagged(part: Any) -> Any:
    if not isinstance(part, list | tuple):
        return part
    return [
        {"f": repr(value)} if type(value) is float and not math.isfinite(value) else value for value in part
    ]


def _tag(value: object) -> dict[str, str]:
    if isinstance(value, bytes | bytearray | memoryview):
        return {"x": bytes(value).hex()}
    raise TypeError(f"{type(value).__name__} is no value of a row")


def _untag(tagged: dict[str, str]) -> bytes | float:
    digits = tagged.get("x")
    return bytes.fromhex(digits) if digits is not None else float(tagged["f"])


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"), default=_tag
)
_DECODER = json.JSONDecoder(object_hook=_untag)
