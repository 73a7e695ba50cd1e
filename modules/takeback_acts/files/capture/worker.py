"""The worker: a process that scans parts of a tree for the daemon. Stands alone, on the stdlib.

It is a program of its own, so that no process with threads is ever forked.
"""

from __future__ import annotations

import gc
import marshal
import os
import sys
from array import array
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any

from takeback_acts.files.capture.columns import Columns, Stats, UnknownLayoutError
from takeback_acts.files.capture.known import Before, Known
from takeback_acts.files.capture.marks import Own
from takeback_acts.files.capture.scan import Difference, Step, scan


def main() -> None:
    """Serves as the last arguments say: the handles of the root and of the tokens."""
    gc.disable()
    root, tokens = map(int, sys.argv[-2:])
    Worker(root, tokens).serve(sys.stdin.buffer, sys.stdout.buffer)


class Worker:
    """Scans parts of a tree for as long as there are tokens for them."""

    def __init__(self, root: int, tokens: int) -> None:
        self._root, self._tokens = root, tokens
        self._known = _maker()
        self._folders: dict[int, Before] = {}
        self._parts: list[list[Step]] = []

    def serve(self, source: IO[bytes], target: IO[bytes]) -> None:
        """Answers until the pipe is closed: `set` and `steps` tell what is known, `scan` asks."""
        while (message := receive(source)) is not None:
            if message[0] == "set":
                number, own, settled, names, marks = message[1:]
                self._folders[number] = self._known(own, settled, names, array("q", marks))
            elif message[0] == "steps":
                self._go(message[1])
            else:
                for difference in self._scan():
                    target.write(packed(tuple(difference)))
                target.write(packed(("done",)))
                target.flush()

    def _go(self, parts: list[list[Any]]) -> None:
        self._parts = [[Step(*step) for step in part] for part in parts]
        kept = {step.number for part in self._parts for step in part}
        self._folders = {number: known for number, known in self._folders.items() if number in kept}

    def _scan(self) -> Iterator[Difference]:
        while True:
            try:
                token = os.read(self._tokens, 1)
            except BlockingIOError:
                return
            yield from scan(self._root, self._parts[token[0]], self._folders.__getitem__)


def packed(message: Any) -> bytes:
    """One message for a pipe."""
    data = marshal.dumps(message)
    return len(data).to_bytes(8, "little") + data


def receive(source: IO[bytes]) -> Any:
    """Reads one message from a pipe; None also when the other end is gone."""
    length = source.read(8)
    if len(length) < 8:
        return None
    return marshal.loads(source.read(int.from_bytes(length, "little")))  # noqa: S302 - from our own process


def _maker() -> Callable[[Own, bool, bytes, array[int]], Before]:
    try:
        return partial(Columns, Stats())
    except UnknownLayoutError:
        return Known
