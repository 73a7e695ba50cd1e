"""Real daemons and real client processes over a home of their own."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from takeback.home import Home
from takeback_doors.cli.process import wait_for_exit

SECONDS = 60


@dataclass(frozen=True)
class Ran:
    """One command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, which must be one JSON object and nothing else."""
        return json.loads(self.out)


class Cli:
    """`takeback` over one home."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = Home.at(root / "home")
        self.work = root / "work"
        self.work.mkdir()
        self.daemons: list[Daemon] = []
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith("TAKEBACK_")}
        self.environ |= {"TAKEBACK_HOME": str(root / "home"), "TAKEBACK_MCP__PORT": "0"}

    def command(self, *args: str) -> list[str]:
        """The command line of a client."""
        return [sys.executable, "-W", "error", "-m", "takeback_doors.cli", *args]

    def run(self, *args: str, stdin: str = "", env: dict[str, str] | None = None) -> Ran:
        """Run a command to its end, without a terminal."""
        ran = subprocess.run(
            self.command(*args),
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environ | (env or {}),
            cwd=self.work,
            timeout=SECONDS,
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    def json(self, *args: str) -> Any:
        """The answer of a command that must succeed."""
        ran = self.run(*args, "--json")
        assert ran.code == 0, ran
        assert ran.json["ok"] is True
        return ran.json

    def serve(self) -> "Daemon":
        """Start `takeback serve` and wait until its doors answer."""
        self.daemons.append(Daemon(self))
        return self.daemons[-1]

    def stop(self) -> None:
        """End whatever daemon serves the home."""
        self.run("stop")
        for daemon in self.daemons:
            daemon.process.wait(SECONDS)


def over_a_home(**environ: str) -> Iterator[Cli]:
    """`takeback` over a new home of a short name, so that its sockets lie within; removed at the end."""
    root = Path(tempfile.mkdtemp(prefix="tb-"))
    cli = Cli(root)
    cli.environ |= environ
    try:
        yield cli
    finally:
        cli.stop()
        shutil.rmtree(root)


class Daemon:
    """A `takeback serve` in the foreground of its own process."""

    def __init__(self, cli: Cli) -> None:
        reading, writing = os.pipe()
        self.log = cli.root / "serve.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                cli.command("serve", "--ready-fd", str(writing)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=cli.environ,
                cwd=cli.work,
                pass_fds=[writing],
            )
        os.close(writing)
        self.ready = _read_line(reading)

    @property
    def pid(self) -> int:
        """The daemon's process id."""
        return self.process.pid

    def end(self, by: signal.Signals = signal.SIGTERM) -> int:
        """Signal it and wait; answers its exit code."""
        self.process.send_signal(by)
        return self.process.wait(SECONDS)


def kill(pid: int) -> None:
    """End a process that is no child of ours as hard as a crash, and wait until it is gone."""
    os.kill(pid, signal.SIGKILL)
    assert wait_for_exit(pid, SECONDS)


def _read_line(reading: int) -> Any:
    with open(reading, "rb") as pipe:
        assert select.select([pipe], [], [], SECONDS)[0], "the daemon said nothing"
        return json.loads(pipe.readline())
