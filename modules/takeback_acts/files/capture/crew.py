"""The crew: two processes that scan a tree at once. They are started anew, never forked off the daemon."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from takeback_acts.files.capture import scan, worker
from takeback_acts.files.capture.scan import Difference, Step
from takeback_acts.files.capture.tree import Node, Tree

_PACKAGES = Path(worker.__file__).parents[3]
# Behind the stdlib, so that what else lies beside our packages can take nothing's place.
_PROGRAM = f"import sys; sys.path.append(sys.argv[1]); from {worker.__name__} import main; main()"


class CrewError(OSError):
    """A process of the crew is gone."""


class Crew:
    """Scans roots of many entries, told only what changed since the last scan. Calls block."""

    def __init__(self, root: int, size: int = 2) -> None:
        self._mates = [_Mate(root) for _ in range(size)]
        self._shape = -1

    def begin(self, tree: Tree) -> dict[int, Node]:
        """Has the processes scan, and answers the nodes by number; raises CrewError."""
        steps = list(tree.steps())
        nodes = {step.number: node for node, step in steps}
        try:
            if self._shape != tree.shape:
                for mate, share in zip(self._mates, _shares(steps, len(self._mates)), strict=True):
                    mate.steps(share)
                self._shape = tree.shape
            for mate in self._mates:
                mate.ask(nodes)
        except OSError as error:
            raise _lost(error) from None
        return nodes

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


class _Mate:
    def __init__(self, root: int) -> None:
        words = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _PROGRAM, str(_PACKAGES), str(root)]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=[root]
        )
        self._sent: dict[int, int] = {}
        self._looked: list[int] = []

    def steps(self, steps: list[Step]) -> None:
        """Tells which folders to look at, and the way there."""
        assert self._process.stdin is not None
        self._looked = [step.number for step in steps if step.look]
        worker.send(self._process.stdin, ("steps", [tuple(step) for step in steps]))
        kept = {step.number for step in steps}
        self._sent = {number: stamp for number, stamp in self._sent.items() if number in kept}

    def ask(self, nodes: dict[int, Node]) -> None:
        """Tells what changed in the baseline, and has it scan."""
        pipe = self._process.stdin
        assert pipe is not None
        for number in self._looked:
            node = nodes[number]
            if self._sent.get(number) != node.stamp:
                own, settled, names, marks = node.known()
                worker.send(pipe, ("set", number, own, settled, names, marks.tobytes()))
                self._sent[number] = node.stamp
        worker.send(pipe, ("scan",))
        pipe.flush()

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


def _lost(error: Exception) -> CrewError:
    return CrewError(5, f"a scanning process is gone: {error}")


def _shares(steps: list[tuple[Node, Step]], size: int) -> list[list[Step]]:
    """Cuts the folders into parts of like numbers of entries, each with the folders on the way to it."""
    left = sum(node.count() + 4 for node, _ in steps)
    shares: list[list[Step]] = []
    at = 0
    for share in range(size):
        goal, taken, part = left / (size - share), 0, _way_to(steps, at)
        while at < len(steps) and (taken < goal or share == size - 1):
            taken += steps[at][0].count() + 4
            part.append(steps[at][1])
            at += 1
        left -= taken
        shares.append(part)
    return shares


def _way_to(steps: list[tuple[Node, Step]], at: int) -> list[Step]:
    if at >= len(steps):
        return []
    node, step = steps[at]
    way, depth = [], step.depth
    while node.parent is not None:
        node, depth = node.parent, depth - 1
        way.append(Step(node.number, depth, node.name, False))
    return list(reversed(way))
