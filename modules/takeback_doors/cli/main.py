"""The `takeback` command."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import NoReturn

import click

from takeback.errors import TakebackError, UsageError
from takeback_doors.cli import output

_HERE = "takeback_doors.cli.commands"

# Name -> module that holds a click command of the name. Each is imported when it is asked for, so that
# what one command needs slows no other.
_COMMANDS = {
    "agents": f"{_HERE}.agents",
    "audit": f"{_HERE}.audit",
    "completion": f"{_HERE}.completion",
    "connect": f"{_HERE}.connect",
    "demo": f"{_HERE}.demo",
    "diff": f"{_HERE}.diff",
    "disconnect": f"{_HERE}.connect",
    "doctor": f"{_HERE}.doctor",
    "gate": f"{_HERE}.gate",
    "gc": f"{_HERE}.gc",
    "history": f"{_HERE}.history",
    "journal": f"{_HERE}.journal",
    "log": f"{_HERE}.log",
    "mcp": f"{_HERE}.mcp",
    "modules": f"{_HERE}.modules",
    "pin": f"{_HERE}.pin",
    "reach": f"{_HERE}.reach",
    "redo": f"{_HERE}.redo",
    "rewind": f"{_HERE}.rewind",
    "rows": f"{_HERE}.rows",
    "run": f"{_HERE}.run",
    "serve": f"{_HERE}.serve",
    "sessions": f"{_HERE}.sessions",
    "settle": f"{_HERE}.settle",
    "show": f"{_HERE}.show",
    "status": f"{_HERE}.status",
    "stop": f"{_HERE}.stop",
    "tools": f"{_HERE}.tools",
    "undo": f"{_HERE}.undo",
    "version": f"{_HERE}.version",
}


class Commands(click.Group):
    """A group whose commands are imported one by one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command's name, sorted."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, or None."""
        if cmd_name not in _COMMANDS:
            return None
        found: click.Command = getattr(import_module(_COMMANDS[cmd_name]), cmd_name)
        return found


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """See what AI agents did for you, and take it back.

    Commands that need the daemon start it when none runs. With --json a command answers
    {"ok": true, ...} or {"ok": false, "error": {...}}. Exit codes: 0 done, 1 failed, 2 usage,
    3 conflict, 4 refused, 5 not found.
    """


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns its exit code, and lets no exception out but SystemExit."""
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    # What `journal undo` says is for programs, and JSON in any case.
    as_json = "--json" in ours or ours[:2] == ["journal", "undo"]
    try:
        code = cli.main(list(arguments), prog_name="takeback", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        _drop_output()
        return 1
    except (KeyboardInterrupt, click.Abort):
        output.say("Interrupted. What the daemon had begun, it finishes.")
        return 130
    except click.exceptions.NoArgsIsHelpError as error:
        if as_json:
            return _guarded_report(UsageError("usage.invalid", "A command is missing", _see(error)), True)
        error.show()
        return error.exit_code
    except click.ClickException as error:
        return _guarded_report(_usage(error), as_json)
    except TakebackError as error:
        return _guarded_report(error, as_json)
    except Exception as error:
        return _guarded_report(output.internal(error), as_json)


def main() -> NoReturn:
    """The console script: run what the command line says and end the process with its exit code."""
    # A client lives for milliseconds, of which collecting garbage and taking the interpreter apart
    # would be a fifth. The daemon wants both.
    gc.disable()
    if isinstance(sys.stdout, TextIOWrapper):
        # A name that the terminal's encoding lacks must not end a command half-way.
        sys.stdout.reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:])
    if sys.argv[1:2] == ["serve"]:
        sys.exit(code)
    sys.stderr.flush()
    os._exit(code)


def _usage(error: click.ClickException) -> TakebackError:
    return UsageError("usage.invalid", " ".join(error.format_message().split()), _see(error))


def _see(error: click.ClickException) -> str:
    where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "takeback"
    return f"See `{where} --help`."


def _guarded_report(error: TakebackError, as_json: bool) -> int:
    try:
        code = output.report(error, as_json=as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return error.exit_code
    return code


def _drop_output() -> None:
    # The interpreter flushes stdout once more when it ends, and would complain again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
