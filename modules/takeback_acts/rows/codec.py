"""Codec: changes of rows as text, and back without a difference."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from takeback_acts.rows.changes import Change
from takeback_acts.rows.tables import Image

Line: TypeAlias = "tuple[str, Image | None, Image | None]"


def encode(changes: Iterable[Change]) -> str:
    """The changes as JSON: a list of [table, before, after]. What JSON has no word for is tagged: bytes
    {"x": hex}, and {"f": "inf"}, "-inf" or "nan"."""
    try:
        return _ENCODER.encode(list(changes))
    except ValueError:
        return _ENCODER.encode([(name, _tagged(before), _tagged(after)) for name, before, after in changes])


def decode(text: str) -> list[Line]:
    """What `encode` was given."""
    return [_line(each) for each in _DECODER.decode(text)]


def decode_all(texts: Sequence[str]) -> list[list[Line]]:
    """What `encode` was given each time; much faster than one after the other."""
    decoded = _DECODER.decode("[" + ",".join(texts) + "]")
    return [[_line(each) for each in lines] for lines in decoded]


def _line(each: list[Any]) -> Line:
    name, before, after = each
    return (name, None if before is None else tuple(before), None if after is None else tuple(after))


def _tagged(image: Image | None) -> list[Any] | None:
    if image is None:
        return None
    return [
        {"f": repr(value)} if type(value) is float and not math.isfinite(value) else value for value in image
    ]


def _tag(value: object) -> dict[str, str]:
    if isinstance(value, bytes | bytearray | memoryview):
        return {"x": bytes(value).hex()}
    raise TypeError(f"{type(value).__name__} is no value of a row")


def _untag(tagged: dict[str, str]) -> bytes | float:
    digits = tagged.get("x")
    return bytes.fromhex(digits) if digits is not None else float(tagged["f"])


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_tag)
_DECODER = json.JSONDecoder(object_hook=_untag)
