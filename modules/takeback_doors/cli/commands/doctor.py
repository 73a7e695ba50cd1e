"""`takeback doctor`"""

from __future__ import annotations

from typing import Any

import click

from takeback.errors import TakebackError
from takeback_doors.cli.checks import local_checks
from takeback_doors.cli.client import Connection
from takeback_doors.cli.findings import Finding
from takeback_doors.cli.output import write_json
from takeback_doors.cli.paths import in_words
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
    from takeback_doors.cli.screen import console, show_listing, text

    wrong = [check for check in found if not check["ok"]]
    rows = []
    for check in found:
        words = text(f"{check['name']}: ", "bold").append_text(text(_said(check)))
        if not check["ok"] and check["hint"]:
            words.append("\n").append_text(text(check["hint"]))
        rows.append((text("ok", "green") if check["ok"] else text("NOT OK", "red"), words))
    show_listing(rows)
    console().print(text(_verdict(len(wrong), len(found)), "red" if wrong else "green"))


def _said(check: dict[str, Any]) -> str:
    # Behind a word of its own a path is told apart from one within another.
    words = in_words(f" {check['detail']}", (), 0).strip()
    return words if check["ok"] else _sentence(words)


def _sentence(words: str) -> str:
    return words if words.endswith((".", "!", "?")) else f"{words}."


def _verdict(wrong: int, all_of_them: int) -> str:
    if not wrong:
        return "All well."
    return f"{wrong} of {all_of_them} checks need{'s' if wrong == 1 else ''} you; see above."
