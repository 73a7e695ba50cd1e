"""Where a command's answer goes: data to stdout, words to stderr."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from takeback.errors import TakebackError
from takeback_doors.cli.plain import visible


def write_json(shape: dict[str, Any]) -> None:
    """Print one JSON object, ASCII only: indented for a person's eyes, on one line for a program."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(shape, indent=indent) + "\n")


def say(text: str) -> None:
    """Tell the person something that is no data."""
    sys.stderr.write(visible(text) + "\n")


def report(error: TakebackError, *, as_json: bool) -> int:
    """Show an error in the form that was asked for; returns the exit code."""
    if as_json:
        write_json(_shape(error))
    else:
        say(f"Error: {error.message}")
        if error.hint:
            say(f"  {error.hint}")
        if "plan" in error.data:
            from takeback_doors.cli.plans import show_plan

            show_plan(error.data["plan"], stderr=True)
    return error.exit_code


def internal(error: Exception) -> TakebackError:
    """The typed error for a defect of ours; where it happened goes to a file, not to the terminal."""
    where = _write_trace(error)
    hint = f"Where it happened is in {where}; please report it." if where else "Please report it."
    return TakebackError("cli.internal", f"takeback itself failed: {type(error).__name__}", hint)


def _shape(error: TakebackError) -> dict[str, Any]:
    shape: dict[str, Any] = {"ok": False, "error": error.as_dict()}
    if "plan" in error.data:
        shape["plan"] = error.data["plan"]
        shape["error"]["data"] = {key: value for key, value in error.data.items() if key != "plan"}
    return shape


def _write_trace(error: Exception) -> Path | None:
    import traceback

    from takeback_doors.cli.place import client_log

    try:
        path = client_log()
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w", encoding="utf-8") as log:
            # The place without the words, which may quote what is the person's alone.
            log.writelines([*traceback.format_tb(error.__traceback__), f"{type(error).__name__}\n\n"])
    except (OSError, TakebackError):
        return None
    return path
