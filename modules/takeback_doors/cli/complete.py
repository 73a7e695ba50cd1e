"""Names that the shell completes. A daemon is asked when one runs; none is started for the Tab key."""

from __future__ import annotations

from typing import Any

import click

from takeback.errors import TakebackError
from takeback_doors.cli.client import try_connect
from takeback_doors.cli.place import home

_SECONDS = 2.0


def agent_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Agents that begin like this."""
    return _names("agents.list", "agents", incomplete)


def database_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Connected databases that begin like this."""
    return _names("rows.databases", "databases", incomplete)


def module_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Modules that begin like this."""
    return _names("kernel.modules", "modules", incomplete)


def tool_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Tools that begin like this."""
    return _names("kernel.tools", "tools", incomplete)


def _names(tool: str, key: str, incomplete: str) -> list[str]:
    found: list[dict[str, Any]] = []
    try:
        if daemon := try_connect(home().socket):
            with daemon:
                found = daemon.call(tool, timeout=_SECONDS)[key]
    except TakebackError:
        return []
    return [each["name"] for each in found if each["name"].startswith(incomplete)]
