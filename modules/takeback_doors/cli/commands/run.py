"""`takeback run`"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any

import click

from takeback.errors import NotFoundError, RefusedError, TakebackError
from takeback_doors.cli.captured import listed, not_captured
from takeback_doors.cli.child import Child, exit_code_of
from takeback_doors.cli.output import report, say
from takeback_doors.cli.paths import to_resource
from takeback_doors.cli.plain import visible
from takeback_doors.cli.shell import Shell

_LINE = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.command(context_settings=_LINE)
@click.argument("command", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--root", "roots", metavar="DIR", multiple=True, help="A folder that it may change; repeat.")
@click.option("--session", metavar="ID", help="The session that it belongs to in the log.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing at the end.")
@click.option("--anyway", is_flag=True, help="Run it also when what it changes can't be captured.")
@click.option("--no-start", is_flag=True, help="Fail when no daemon runs; start none.")
def run(
    command: tuple[str, ...],
    roots: tuple[str, ...],
    session: str | None,
    quiet: bool,
    anyway: bool,
    no_start: bool,
) -> int:
    """Run a command, and keep what it takes to undo what it changed.

    Terminal, input, output, signals and exit code are the command's own. What it changes in the git work tree
    around the current folder, else in that folder, or in each --root, becomes one act.
    """
    with ExitStack() as stack:
        shell = Shell(as_json=False, may_start=not no_start, stack=stack)
        watched = _Watched(shell, session, quiet=quiet)
        try:
            watched.begin(command, roots)
        except TakebackError as error:
            if not anyway:
                raise
            say(f"takeback: not captured: {error.message}")
        try:
            code = Child().run(command)
        except (NotFoundError, RefusedError) as error:
            report(error, as_json=False)
            watched.end(code := exit_code_of(error), ran=False)
        else:
            watched.end(code)
        return code


class _Watched:
    """The window around a command."""

    def __init__(self, shell: Shell, session: str | None, *, quiet: bool) -> None:
        self._shell = shell
        self._session = session
        self._quiet = quiet
        self._window = ""
        self._roots: list[str] = []

    def begin(self, command: tuple[str, ...], roots: tuple[str, ...]) -> None:
        asked = {
            "cwd": to_resource(os.getcwd()),
            "roots": [to_resource(os.path.realpath(root)) for root in roots],
            "command": [os.fsencode(word).decode(errors="backslashreplace") for word in command],
            "process": os.getpid(),
        }
        begun = self._shell.call("files.begin_command", asked, session=self._session)
        self._window, self._roots = begun["window"], begun["roots"]

    def end(self, code: int, *, ran: bool = True) -> None:
        """Says what it changed; the window outlives a daemon that was killed meanwhile."""
        if not self._window:
            return
        asked = {"window": self._window, "exit_code": code}
        try:
            try:
                ended = self._shell.call("files.end_command", asked, session=self._session)
            except TakebackError as error:
                if not error.code.startswith("daemon."):
                    raise
                with self._shell.another() as daemon:
                    ended = daemon.call("files.end_command", asked, session=self._session)
        except TakebackError as error:
            say(f"takeback: what it changed is not in the log yet: {error.message}")
        else:
            # That a command which never ran changed nothing goes without saying.
            if not self._quiet and (ran or ended["changed"]):
                for line in _lines(ended, self._roots):
                    say(f"takeback: {line}")


def _lines(ended: dict[str, Any], roots: list[str]) -> list[str]:
    lost = [f"not captured: {words}" for words in not_captured(ended["notes"])]
    coincident = ended["coincident"]
    others = [f"may be somebody else's and stay: {listed(coincident)}"] if coincident else []
    return [_words(ended, roots), *lost, *others]


def _words(ended: dict[str, Any], roots: list[str]) -> str:
    number, act = ended["changed"], ended["act"]
    # Where it looked belongs to it: what a command did elsewhere is not in the log.
    where = " and ".join(visible(root) for root in roots)
    words = f"changed {number} path{'s' if number != 1 else ''}" if number else f"nothing changed in {where}"
    if act:
        from takeback_doors.cli.ids import shortened

        words += f"; take it back with `takeback undo {shortened([act])[act]}`"
    return words + (f" (left out: {listed(ended['left_out'])})" if ended["left_out"] else "")
