"""What a client imports: nothing heavy on the way of a reading command with --json."""

import subprocess
import sys

import pytest

from tests.cli.running import Cli

HEAVY = {
    "aiosqlite",
    "anyio",
    "asyncio",
    "blinker",
    "concurrent",
    "importlib.metadata",
    "logging",
    "mcp",
    "multiprocessing",
    "pluggy",
    "pydantic",
    "rich",
    "sqlite3",
    "ssl",
    "starlette",
    "subprocess",
    "traceback",
    "uvicorn",
    "uvloop",
}
_LOADED = (
    "import sys; from takeback_doors.cli.main import run; code = run(sys.argv[1:]); "
    "print(*sorted(sys.modules), file=sys.stderr); sys.exit(code)"
)


@pytest.mark.parametrize(
    "args",
    [
        ["log"],
        ["log", "--since", "1h", "--limit", "5"],
        ["agents", "list"],
        ["status"],
        ["modules", "list"],
        ["audit"],
    ],
)
def test_a_reading_command_imports_nothing_heavy(served: Cli, args: list[str]):
    ran = subprocess.run(
        [sys.executable, "-c", _LOADED, *args, "--json"],
        capture_output=True,
        text=True,
        env=served.environ,
        check=True,
    )
    loaded = set(ran.stderr.split())
    assert "click" in loaded
    assert loaded & HEAVY == set()


def test_the_console_script_imports_no_command_it_does_not_run(served: Cli):
    ran = subprocess.run(
        [sys.executable, "-c", _LOADED, "log", "--json"],
        capture_output=True,
        text=True,
        env=served.environ,
        check=True,
    )
    own = {name for name in ran.stderr.split() if name.startswith("takeback_doors.cli.commands.")}
    assert own == {"takeback_doors.cli.commands.log"}
