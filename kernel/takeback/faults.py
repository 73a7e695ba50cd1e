"""Named places between durable steps where a test may stop, kill or fail the process."""

from __future__ import annotations

from collections.abc import Callable

Hook = Callable[[str], None]

_hook: Hook | None = None


def install(hook: Hook) -> Callable[[], None]:
    """Calls `hook(name)` at every point, in the thread that passes it; returns what removes it again."""
    global _hook
    _hook = hook
    return _remove


def point(name: str) -> None:
    """A place worth dying at, dotted like an error's code: `store.ran`."""
    if _hook is not None:
        _hook(name)


def _remove() -> None:
    global _hook
    _hook = None
