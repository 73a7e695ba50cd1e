"""The hooks of takeback: for discovery only, called once at load, never in a call's path."""

from __future__ import annotations

from collections.abc import Callable

from pluggy import HookimplMarker, HookspecMarker

from takeback.module import Module

PROJECT = "takeback"

hookspec = HookspecMarker(PROJECT)
hookimpl = HookimplMarker(PROJECT)


@hookspec
def register_modules(register: Callable[[type[Module] | str], None]) -> None:
    """Offer modules: call `register(MyModule)`, or `register("package.module:MyModule")`, once for each."""
