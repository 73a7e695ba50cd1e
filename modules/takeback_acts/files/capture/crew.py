"""The crew: a few processes that scan a tree at once. They are started anew, never forked off the daemon."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from takeback_acts.files.capture import scan, worker
from takeback_acts.files.capture.node import Node
from takeback_acts.files.capture.scan import Difference, Step
from takeback_acts.files.capture.tree import Tree

_PACKAGES = Path(worker.__file__).parents[3]
# Behind the stdlib, so that what else lies beside our packages can take nothing's place.
_PROGRAM = f"import sys; sys.path.append(sys.argv[1]); from {worker.__name__} import main; main()"
_PARTS = 64
# Something else runs as well, and each of them holds the marks of the whole tree.
_SIZE = min(4, (os.cpu_count() or 1) + 1)


class CrewError(OSError):
    """A process of the crew is gone."""


class Crew:
    """Scans roots of many entries, told only what changed since the last scan. Calls block.

    All processes know the whole tree, and each takes one part of it after another, so that none waits for
    another on a busy machine. A token in a pipe, a byte with the part's number, stands for a part that nobody
    has taken yet. Raises CrewError when no process can be started.
    """

    def __init__(self, root: int, size: int = _SIZE) -> None:
        self._tokens, self._giver = os.pipe()
        os.set_blocking(self._tokens, False)
        self._mates: list[_Mate] = []
        self._shape = -1
        self._nodes: dict[int, Node] = {}
        self._sent: dict[int, int] = {}
        self._parts = 0
        try:
            for _ in range(size):
                self._mates.append(_Mate(root, self._tokens))
        except OSError as error:
            self.close()
            raise _lost(error) from None

    def begin(self, tree: Tree) -> dict[int, Node]:
        """Has the processes scan, and answers the nodes by number; raises CrewError."""
        try:
            if self._shape != tree.shape:
                self._tell_steps(tree)
            for number, node in self._nodes.items():
                if self._sent.get(number) != node.stamp:
                    own, settled, names, marks = node.known()
                    self._tell("set", number, own, settled, names, marks.tobytes())
                    self._sent[number] = node.stamp
            os.write(self._giver, bytes(range(self._parts)))
            self._tell("scan")
            for mate in self._mates:
                mate.flush()
        except OSError as error:
            raise _lost(error) from None
        return self._nodes

    def finish(self) -> list[Difference]:
        """How folders differ; raises CrewError."""
        try:
            return [difference for mate in self._mates for difference in mate.answers()]
        except (OSError, EOFError, ValueError) as error:
            raise _lost(error) from None

    def close(self) -> None:
        """Ends the processes."""
        for mate in self._mates:
            mate.close()
        os.close(self._tokens)
        os.close(self._giver)

    def _tell_steps(self, tree: Tree) -> None:
        steps = list(tree.steps())
        self._nodes = {step.number: node for node, step in steps}
        self._sent = {number: stamp for number, stamp in self._sent.items() if number in self._nodes}
        parts = cut(steps, _PARTS)
        self._parts = len(parts)
        self._tell("steps", [[tuple(step) for step in part] for part in parts])
        self._shape = tree.shape

    def _tell(self, *message: object) -> None:
        data = worker.packed(message)
        for mate in self._mates:
            mate.write(data)


class _Mate:
    def __init__(self, root: int, tokens: int) -> None:
        words = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _PROGRAM, str(_PACKAGES)]
        self._process = subprocess.Popen(
            [*words, str(root), str(tokens)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=[root, tokens],
        )

    def write(self, data: bytes) -> None:
        """Writes a message to it."""
        assert self._process.stdin is not None
        self._process.stdin.write(data)

    def flush(self) -> None:
        """Has it read all that was written."""
        assert self._process.stdin is not None
        self._process.stdin.flush()

    def answers(self) -> Iterator[Difference]:
        """What it found."""
        assert self._process.stdout is not None
        while (answer := worker.receive(self._process.stdout)) is not None:
            if answer == ("done",):
                return
            yield Difference(*answer)
        raise EOFError("no more answers")

    def close(self) -> None:
        """Ends it."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process.wait()


def scan_here(root: int, tree: Tree) -> tuple[dict[int, Node], list[Difference]]:
    """The same scan in this thread, for trees that are not worth a crew."""
    steps = list(tree.steps())
    nodes = {step.number: node for node, step in steps}
    found = list(scan.scan(root, [step for _, step in steps], lambda number: nodes[number].known()))
    return nodes, found


def cut(steps: list[tuple[Node, Step]], most: int) -> list[list[Step]]:
    """Cuts a way into parts of like numbers of entries, each with the folders on the way to it."""
    goal = sum(node.count() + 4 for node, _ in steps) / most
    parts: list[list[Step]] = []
    taken = 0.0
    for at, (node, step) in enumerate(steps):
        if not parts or taken >= goal * len(parts):
            parts.append(_way_to(steps, at))
        parts[-1].append(step)
        taken += node.count() + 4
    return parts


def _lost(error: Exception) -> CrewError:
    return CrewError(5, f"a scanning process is gone: {error}")


def _way_to(steps: list[tuple[Node, Step]], at: int) -> list[Step]:
    node, step = steps[at]
    way, depth = [], step.depth
    while node.parent is not None:
        node, depth = node.parent, depth - 1
        way.append(Step(node.number, depth, node.name, False))
    return list(reversed(way))
