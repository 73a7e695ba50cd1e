"""`takeback status`"""

from __future__ import annotations

from typing import Any

import click

from takeback_doors.cli.place import home
from takeback_doors.cli.shell import Shell, without_start

_SECONDS = 10.0


@click.command()
@without_start
def status(shell: Shell) -> None:
    """Say whether the daemon runs; start none."""
    daemon = shell.running()
    shape: dict[str, Any] = {"running": daemon is not None, "socket": str(home().socket)}
    if daemon is not None:
        shape |= {"pid": daemon.peer(), "status": daemon.call("kernel.status", timeout=_SECONDS)}
        shape["mcp"] = shell.call_if_there("mcp.status")
    shell.answer(shape, lambda: _show(shape))


def _show(shape: dict[str, Any]) -> None:
    from takeback_doors.cli.screen import show_fields, state

    if not shape["running"]:
        show_fields([("Daemon", state("not running")), ("Socket", shape["socket"])])
        return
    fields = [("Agents at", (shape["mcp"] or {}).get("url", ""))]
    fields += [
        (name.replace("_", " ").capitalize(), _words(value)) for name, value in shape["status"].items()
    ]
    show_fields(
        [("Daemon", state("running")), ("Process", str(shape["pid"])), ("Socket", shape["socket"]), *fields]
    )


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items())
    if isinstance(value, list):
        return ", ".join(str(each) for each in value)
    return "" if value is None else str(value)
