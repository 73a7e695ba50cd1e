"""A command on a terminal of its own."""

import os
import pty
import re
import select
import signal
import subprocess
import time
from contextlib import suppress
from typing import Any

from tests.cli.running import SECONDS, Cli, Ran

_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """A command whose stdin and stderr, and stdout where `piped` is false, are a terminal."""

    def __init__(self, cli: Cli, *args: str, piped: bool = True, env: dict[str, str] | None = None) -> None:
        self._master, slave = pty.openpty()
        environ = {name: value for name, value in cli.environ.items() if name != "NO_COLOR"}
        environ |= {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24", **(env or {})}
        self.process = subprocess.Popen(
            cli.command(*args),
            stdin=slave,
            stderr=slave,
            stdout=subprocess.PIPE if piped else slave,
            env=environ,
            cwd=cli.work,
            start_new_session=True,
            # Whoever runs the tests in the background ignores Ctrl-C, and that is inherited.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(slave)
        self.raw = ""

    @property
    def shown(self) -> str:
        """What the terminal showed, without its colours."""
        return _STYLE.sub("", self.raw)

    def wait_for(self, words: str) -> None:
        """Read until the terminal shows some words."""
        while words not in self.shown:
            assert self._read(), f"ended without {words!r}: {self.shown}"

    def type(self, words: str) -> None:
        """Press some keys and Enter."""
        os.write(self._master, words.encode() + b"\n")

    def press_ctrl_c(self) -> None:
        """Press Ctrl-C until the command ends.

        A signal that comes between the question and the reading of its answer is seen only once the reading
        is interrupted, which takes a second press: so it is with every program that asks.
        """
        deadline = time.monotonic() + SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"hangs after: {self.shown}"
            self.process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(0.5)

    def end(self) -> Ran:
        """Wait until the command has ended."""
        while self._read():
            pass
        os.close(self._master)
        with self.process:
            out = self.process.stdout.read().decode() if self.process.stdout else ""
            return Ran(self.process.wait(SECONDS), out, self.shown)

    def _read(self) -> bool:
        assert select.select([self._master], [], [], SECONDS)[0], f"hangs after: {self.shown}"
        try:
            part = os.read(self._master, 65536)
        except OSError:
            # Linux says so when the last one to have the terminal open has gone.
            return False
        self.raw += part.decode()
        return bool(part)


def answered(cli: Cli, answer: str, *args: str) -> tuple[str, Ran]:
    """The question that a command asks, on one line, and how it ends with this answer."""
    terminal = Terminal(cli, *args, env={"COLUMNS": "1000"})
    terminal.wait_for("[y/N]: ")
    question = terminal.shown.replace("\r", "").splitlines()[-1]
    terminal.type(answer)
    return question, terminal.end()


def said_yes(cli: Cli, *args: str) -> Any:
    """The answer of a command that must succeed, after the yes that it asks for."""
    _, ran = answered(cli, "y", *args, "--json")
    assert ran.code == 0, ran
    return ran.json
