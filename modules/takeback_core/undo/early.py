"""Early word: who waits on a thread of its own hears that an intent is durable before the loop does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Heard = Callable[[], None]

_asked: ContextVar[Heard | None] = ContextVar("takeback_undo_early", default=None)


@contextmanager
def hearing(heard: Heard | None) -> Iterator[None]:
    """Have what is begun within it tell `heard`, on the thread that wrote it."""
    token = _asked.set(heard)
    try:
        yield
    finally:
        _asked.reset(token)


def asked() -> Heard | None:
    """Who is to hear of what is begun here."""
    return _asked.get()
