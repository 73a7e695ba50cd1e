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


def session_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Sessions that begin like this, of the agent where one is named already."""
    args = {"agent": ctx.params.get("agent"), "limit": 500}
    return _names("sessions.list", "sessions", incomplete, args, name="session")


def turn_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Turns that begin like this, of the session that is named already."""
    args = {"session": ctx.params.get("session"), "agent": ctx.params.get("agent")}
    return _names("sessions.show", "turns", incomplete, args, name="turn")


def _names(
    tool: str, key: str, incomplete: str, args: dict[str, Any] | None = None, *, name: str = "name"
) -> list[str]:
    found: list[dict[str, Any]] = []
    given = {each: value for each, value in (args or {}).items() if value is not None}
    try:
        if daemon := try_connect(home().socket):
            with daemon:
                found = daemon.call(tool, given, timeout=_SECONDS)[key]
    except TakebackError:
        return []
    names = [each[name] for each in found if each[name] is not None]
    return [each for each in names if each.startswith(incomplete)]
