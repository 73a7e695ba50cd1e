"""What every command works with: the home, the daemon, and the form of the answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import update_wrapper
from typing import Any, TypeVar

import click

from takeback.errors import TakebackError
from takeback_doors.cli import output
from takeback_doors.cli.client import Connection, not_running, try_connect
from takeback_doors.cli.place import daemon_log, home

F = TypeVar("F", bound=Callable[..., Any])


class Shell:
    """One run of one command."""

    def __init__(self, *, as_json: bool, may_start: bool, stack: ExitStack) -> None:
        self.as_json = as_json
        self._may_start = may_start
        self._stack = stack
        self._connection: Connection | None = None

    def daemon(self) -> Connection:
        """The daemon, started when none runs; raises `daemon.not_running` where that is not wanted."""
        if self._connection is None:
            self._connection = self._stack.enter_context(self._connect())
        return self._connection

    def another(self) -> Connection:
        """One more connection, for its caller to close."""
        return self._connect()

    def running(self) -> Connection | None:
        """The daemon when one runs; it is never started for the question."""
        if self._connection is None and (found := try_connect(home().socket)):
            self._connection = self._stack.enter_context(found)
        return self._connection

    def call(self, tool: str, args: dict[str, Any] | None = None, **how: Any) -> dict[str, Any]:
        """Call a tool as the person; what is None or empty in `args` is left out."""
        given = {key: value for key, value in (args or {}).items() if value not in (None, (), [], "")}
        return self.daemon().call(tool, given, **how)

    def call_or_why(
        self, tool: str, args: dict[str, Any] | None = None, **how: Any
    ) -> tuple[dict[str, Any] | None, str]:
        """What a tool answers, or None and the reason why its module does not run."""
        try:
            return self.call(tool, args, **how), ""
        except TakebackError as error:
            if error.code not in ("tool.unknown", "module.off"):
                raise
            return None, self._standing(tool.partition(".")[0])

    def _standing(self, name: str) -> str:
        for module in self.call("kernel.modules")["modules"]:
            if module["name"] == name:
                why = f" ({module['why']})" if module["why"] else ""
                return f"The module {name} is {module['state']}{why}"
        return f"There is no module {name}"

    def answer(self, shape: dict[str, Any], show: Callable[[], None]) -> None:
        """Give the result: as JSON when that was asked for, else as `show` prints it."""
        if self.as_json:
            output.write_json({"ok": True, **shape})
        else:
            show()

    def _connect(self) -> Connection:
        if found := try_connect(home().socket):
            return found
        if not self._may_start:
            raise not_running()
        from takeback_doors.cli.starter import start

        return start(home(), daemon_log())


def with_shell(command: F) -> F:
    """Give a command `--json` and `--no-start`, and a Shell as its first argument."""
    command = click.option("--no-start", is_flag=True, help="Fail when no daemon runs; start none.")(command)
    return without_start(command)


def without_start(command: F) -> F:
    """Give a command `--json`, and a Shell that never starts a daemon unless `--no-start` is an option."""

    def run(*args: Any, json: bool, no_start: bool = True, **options: Any) -> Any:
        with ExitStack() as stack:
            return command(Shell(as_json=json, may_start=not no_start, stack=stack), *args, **options)

    made = update_wrapper(run, command)
    return click.option("--json", is_flag=True, help="Answer as one JSON object on stdout.")(made)  # type: ignore[return-value]
