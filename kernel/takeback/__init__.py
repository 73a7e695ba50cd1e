"""takeback: a kernel whose calls can be taken back."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from takeback.callers import Caller
    from takeback.context import Context, Scope
    from takeback.errors import (
        ConflictError,
        NotFoundError,
        RefusedError,
        TakebackError,
        UsageError,
    )
    from takeback.events import Event
    from takeback.home import Home
    from takeback.kernel import Kernel
    from takeback.manifest import Manifest
    from takeback.module import Check, Host, Module
    from takeback.tools import ToolSpec, tool

# Names are looked up when first used: a client that needs an error class must not pay for pydantic.
_WHERE = {
    "Caller": "callers",
    "Check": "module",
    "ConflictError": "errors",
    "Context": "context",
    "Event": "events",
    "Home": "home",
    "Host": "module",
    "Kernel": "kernel",
    "Manifest": "manifest",
    "Module": "module",
    "NotFoundError": "errors",
    "RefusedError": "errors",
    "Scope": "context",
    "TakebackError": "errors",
    "ToolSpec": "tools",
    "UsageError": "errors",
    "tool": "tools",
}

__version__ = "0.1.0"
__all__ = [
    "Caller",
    "Check",
    "ConflictError",
    "Context",
    "Event",
    "Home",
    "Host",
    "Kernel",
    "Manifest",
    "Module",
    "NotFoundError",
    "RefusedError",
    "Scope",
    "TakebackError",
    "ToolSpec",
    "UsageError",
    "__version__",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'takeback' has no attribute {name!r}")
    return getattr(import_module(f"takeback.{_WHERE[name]}"), name)
