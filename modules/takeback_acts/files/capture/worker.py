"""The worker: a process that scans its share of a tree for the daemon. Stands alone, on the stdlib.

It is a program of its own, so that no process with threads is ever forked.
"""

from __future__ import annotations

import gc
import marshal
import sys
from array import array
from typing import IO, Any

from takeback_acts.files.capture.marks import Known
from takeback_acts.files.capture.scan import Step, scan


def main() -> None:
    """Serves the root whose open folder the last argument names, over standard input and output."""
    gc.disable()
    serve(int(sys.argv[-1]), sys.stdin.buffer, sys.stdout.buffer)


def serve(root: int, source: IO[bytes], target: IO[bytes]) -> None:
    """Answers the daemon until it closes the pipe: `set` and `steps` tell what is known, `scan` asks."""
    folders: dict[int, Known] = {}
    steps: list[Step] = []
    while (message := receive(source)) is not None:
        if message[0] == "set":
            number, own, settled, names, marks = message[1:]
            folders[number] = Known(own, settled, names, array("q", marks))
        elif message[0] == "steps":
            steps = [Step(*step) for step in message[1]]
            kept = {step.number for step in steps}
            folders = {number: held for number, held in folders.items() if number in kept}
        else:
            for difference in scan(root, steps, folders.__getitem__, alone=True):
                send(target, tuple(difference))
            send(target, ("done",))
            target.flush()


def send(target: IO[bytes], message: Any) -> None:
    """Writes one message to a pipe."""
    data = marshal.dumps(message)
    target.write(len(data).to_bytes(8, "little") + data)


def receive(source: IO[bytes]) -> Any:
    """Reads one message from a pipe; None also when the other end is gone."""
    length = source.read(8)
    if len(length) < 8:
        return None
    return marshal.loads(source.read(int.from_bytes(length, "little")))  # noqa: S302 - from our own process
