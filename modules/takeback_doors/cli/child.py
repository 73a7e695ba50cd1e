"""A command as a child that has the terminal, the signals and every open file as if we were not there."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from takeback.errors import NotFoundError, RefusedError

# What a terminal sends goes to the child by itself, since both are in one group of processes.
_OF_TERMINALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP)
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)
_BY_SIGNAL = 128


class Child:
    """One command. It is stopped and continued together with us, and gets the signals that are sent to us."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []

    def run(self, command: Sequence[str]) -> int:
        """Runs it to its end; answers its exit code, 128 and the number for one that a signal ended.

        Raises NotFoundError `run.not_found`, RefusedError `run.not_executable`.
        """
        with self._signals():
            try:
                # What our parent left open is meant for the command, so all of it is inherited.
                self._process = subprocess.Popen(command, close_fds=False)
            except (FileNotFoundError, NotADirectoryError):
                raise NotFoundError(
                    "run.not_found", f"There is no command {command[0]!r:.200}", "Nothing was run."
                ) from None
            except OSError as error:
                raise RefusedError(
                    "run.not_executable",
                    f"{command[0]!r:.200} can't be run: {error.strerror}",
                    "Nothing was run.",
                ) from None
            for number in self._early:
                self._send(number)
            self._process.returncode = self._wait(self._process.pid)
            return self._process.returncode

    def _wait(self, pid: int) -> int:
        while True:
            _, status = os.waitpid(pid, os.WUNTRACED)
            if os.WIFSTOPPED(status):
                # Whoever waits for us learns that the command was stopped, and continues both.
                os.kill(os.getpid(), signal.SIGSTOP)
                self._send(signal.SIGCONT)
            elif os.WIFSIGNALED(status):
                return _BY_SIGNAL + os.WTERMSIG(status)
            else:
                return os.WEXITSTATUS(status)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        before: dict[signal.Signals, Any] = {}
        for number in (*_OF_TERMINALS, *_FORWARDED):
            known = signal.getsignal(number)
            # One that is ignored is ignored by the command too, as it inherits that.
            if known != signal.SIG_IGN:
                handler = self._pass_on if number in _FORWARDED else self._pass_on_unless_typed
                before[number] = signal.signal(number, handler)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self._send(number)

    def _pass_on_unless_typed(self, number: int, frame: FrameType | None) -> None:
        if not _in_foreground():
            self._send(number)

    def _send(self, number: int) -> None:
        if self._process is None:
            # The command may run already, while we do not know its number yet.
            self._early.append(number)
        elif self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)


def exit_code_of(error: NotFoundError | RefusedError) -> int:
    """What a shell answers for a command that could not be run."""
    return 127 if isinstance(error, NotFoundError) else 126


def _in_foreground() -> bool:
    """Whether we are what a terminal's keys are sent to."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
