"""Why something failed, in one line that a person can read."""

from __future__ import annotations

from takeback.errors import TakebackError

_MOST = 300


def describe(exc: BaseException) -> str:
    """The exception's type and message on one line of at most 300 characters; of a group, its members'."""
    if isinstance(exc, BaseExceptionGroup):
        text = "; ".join(dict.fromkeys(describe(inner) for inner in exc.exceptions))
    elif isinstance(exc, TakebackError):
        text = f"{exc.message.rstrip('.')}. {exc.hint}" if exc.hint else exc.message
    else:
        text = f"{type(exc).__name__}: {_message(exc)}".removesuffix(": ")
    text = " ".join(text.split())
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"


def _message(exc: BaseException) -> str:
    try:
        return str(exc)
    except Exception:  # a stranger's __str__ may raise as well
        return ""
