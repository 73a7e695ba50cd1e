"""What the demo promises, and what it says when a promise is not kept."""

from __future__ import annotations


class BrokenPromiseError(Exception):
    """Something is not as the demo says."""


def require(holds: bool, promise: str) -> None:
    """Raise BrokenPromiseError with the promise, unless it holds."""
    if not holds:
        raise BrokenPromiseError(promise)
