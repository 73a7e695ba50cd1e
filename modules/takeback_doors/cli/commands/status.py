"""`takeback status`"""

from __future__ import annotations

from typing import Any

import click

from takeback_doors.cli import times
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
        shape["mcp"], why = shell.call_or_why("mcp.status")
        shape["mcp_problem"] = why or (shape["mcp"] or {}).get("problem", "")
    shell.answer(shape, lambda: _show(shape))


def _show(shape: dict[str, Any]) -> None:
    from takeback_doors.cli.screen import show_fields, state, text

    if not shape["running"]:
        show_fields([("Daemon", state("not running")), ("Socket", shape["socket"])])
        return
    found = shape["status"]
    problem = shape["mcp_problem"]
    door = text(shape["mcp"]["url"]) if not problem else text(_closed(shape["mcp"], problem), "red")
    show_fields(
        [
            ("Daemon", state("running")),
            ("Agents at", door),
            ("Version", found["version"]),
            ("Process", str(shape["pid"])),
            ("Started", times.full(found["started"])),
            ("Memory", f"{found['memory_kib'] / 1024:.0f} MiB" if found.get("memory_kib") else ""),
            ("Modules", ", ".join(f"{count} {state}" for state, count in found["modules"].items())),
            ("Home", found["home"]),
            ("Socket", shape["socket"]),
        ]
    )


def _closed(mcp: dict[str, Any] | None, problem: str) -> str:
    return f"`takeback mcp` only, not over HTTP: {problem}" if mcp else f"nowhere: {problem}"
