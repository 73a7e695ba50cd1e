"""`takeback doctor`"""

from __future__ import annotations

from typing import Any

import click

from takeback.errors import TakebackError
from takeback_doors.cli.checks import local_checks
from takeback_doors.cli.client import Connection
from takeback_doors.cli.findings import Finding
from takeback_doors.cli.output import write_json
from takeback_doors.cli.place import home
from takeback_doors.cli.shell import Shell, without_start

_SECONDS = 30.0


@click.command()
@without_start
def doctor(shell: Shell) -> int:
    """Look whether everything is well.

    It works with a daemon and without, and starts none.
    """
    try:
        daemon, trouble = shell.running(), None
    except TakebackError as error:
        daemon, trouble = None, Finding.of("daemon", error)
    found = [check.as_dict() for check in local_checks(home(), running=daemon is not None)]
    if trouble:
        found = [check for check in found if check["name"] != "daemon"] + [trouble.as_dict()]
    if daemon:
        found += _daemon_checks(daemon)
    ok = all(check["ok"] for check in found)
    if shell.as_json:
        write_json({"ok": ok, "checks": found})
    else:
        _show(found)
    return 0 if ok else 1


def _daemon_checks(daemon: Connection) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = daemon.call("kernel.doctor", timeout=_SECONDS)["checks"]
    except TakebackError as error:
        return [Finding.of("kernel", error).as_dict()]
    return found


def _show(found: list[dict[str, Any]]) -> None:
    from takeback_doors.cli.screen import show_table, text

    rows = []
    for check in found:
        words = check["detail"] if check["ok"] else _sentences(check["detail"], check["hint"])
        verdict = text("ok", "green") if check["ok"] else text("NOT OK", "red")
        rows.append((verdict, check["name"], words))
    show_table(("", "Finding", "Found"), rows, wide="Found", none="Nothing was looked at.")


def _sentences(*parts: str) -> str:
    return " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts if part)
