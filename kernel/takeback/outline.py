"""An error as the log may show it."""

from __future__ import annotations

import traceback


def outline(error: BaseException) -> str:
    """The error's type and place, without its words: those may quote a person's data."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    code = getattr(error, "code", None)
    name = type(error).__name__
    return f"{name}({code}){place}" if isinstance(code, str) else f"{name}{place}"


def name_of(called: object) -> str:
    """What a callback or closure is called in the source."""
    return str(getattr(called, "__qualname__", type(called).__qualname__))
