"""A process is really killed at any point of an edit; the next one finds all as before it or all as after."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from tests.sessions.crash_nursery import SCENARIOS

_ROOT = Path(__file__).parents[2]
_AT_ONCE = 2

Point = tuple[str, int]


class Nursery:
    """A process that forks a child for each job."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.sessions.crash_nursery"],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
        )

    def do(
        self, job: str, scenario: str, place: Path, kill: Point | None
    ) -> tuple[bool, list[dict[str, Any]]]:
        """Have a job done in a place: whether it was killed on the way, and what it told."""
        told = place / "told"
        told.unlink(missing_ok=True)
        told.touch()
        request = {"job": job, "scenario": scenario, "place": str(place), "told": str(told), "kill": kill}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        end = int(self._process.stdout.readline())
        lines = [json.loads(line) for line in told.read_text().splitlines()]
        assert end == 0 or (kill and end == -signal.SIGKILL), (job, scenario, kill, end, lines)
        return end != 0, lines

    def close(self) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()


@pytest.fixture(scope="module")
def nurseries() -> Iterator[SimpleQueue[Nursery]]:
    queue: SimpleQueue[Nursery] = SimpleQueue()
    made = [Nursery() for _ in range(_AT_ONCE)]
    for nursery in made:
        queue.put(nursery)
    yield queue
    for nursery in made:
        nursery.close()


class World:
    """One scenario: how it goes when nobody is killed, and what kills leave of it."""

    def __init__(self, scenario: str, place: Path, nurseries: SimpleQueue[Nursery]) -> None:
        self.scenario = scenario
        self.place = place
        self._nurseries = nurseries
        self._do("prepare", place / "prepared")
        _, (before, after) = self._do("act", self._copy(place / "prepared", "peace"))
        self.before, self.after = before["world"], after["world"]
        self.points: list[Point] = [(name, n) for name, n in after["points"]]

    def kill(self, point: Point) -> Path | None:
        """Kill the process that edits; what it left, or None where it did not come by."""
        place = self._copy(self.place / "prepared", f"{point[0]}-{point[1]}")
        killed, _ = self._do("act", place, point)
        return place if killed else None

    def settle(self, ruin: Path) -> list[Point]:
        """Look at what the next process makes of a ruin; answers the points it passed in settling it."""
        _, (settled, again) = self._do("settle", self._copy(ruin, f"{ruin.name}-settled"))
        assert settled["world"] in (self.before, self.after), (ruin.name, settled["world"])
        assert self._is_after(again["world"]), (ruin.name, again["world"])
        return [(name, n) for name, n in settled["points"]]

    def settle_late(self, ruin: Path) -> None:
        """The same when sessions was switched off at the first start."""
        place = self._copy(ruin, f"{ruin.name}-late")
        self._do("without", place)
        _, (settled, again) = self._do("settle", place)
        assert settled["world"] in (self.before, self.after), (ruin.name, settled["world"])
        assert self._is_after(again["world"]), (ruin.name, again["world"])

    def kill_again(self, ruin: Path, point: Point) -> Path | None:
        """Kill the process that settles what the first one left."""
        place = self._copy(ruin, f"{ruin.name}-{point[0]}-{point[1]}")
        killed, _ = self._do("settle", place, point)
        return place if killed else None

    def _is_after(self, world: dict[str, Any]) -> bool:
        """As after the edit, whose text may have been put in a second time where nothing fails any more."""
        if SCENARIOS[self.scenario].failures:
            return bool(world["messages"][-1] == ["m42", "make it junior", "due"])
        return bool(world == self.after)

    def _do(self, job: str, place: Path, kill: Point | None = None) -> tuple[bool, list[dict[str, Any]]]:
        place.mkdir(exist_ok=True)
        nursery = self._nurseries.get()
        try:
            return nursery.do(job, self.scenario, place, kill)
        finally:
            self._nurseries.put(nursery)

    def _copy(self, place: Path, name: str) -> Path:
        return Path(shutil.copytree(place, self.place / name))


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_kill_at_any_point_leaves_all_as_before_or_all_as_after(name, tmp_path, nurseries):
    world = World(name, tmp_path, nurseries)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        ruins = [ruin for ruin in pool.map(world.kill, world.points) if ruin is not None]
        list(pool.map(world.settle, ruins))
    assert len(ruins) > 0.9 * len(world.points)


def test_a_second_kill_in_the_middle_of_settling_changes_nothing(tmp_path, nurseries):
    world = World("rolled back", tmp_path, nurseries)
    for point in (("undo.verifying", 1), ("joint.committed", 1), ("undo.finishing", 1)):
        ruin = world.kill(point)
        assert ruin is not None
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            again = pool.map(partial(world.kill_again, ruin), _named(world.settle(ruin)))
            list(pool.map(world.settle, [each for each in again if each is not None]))


def test_what_is_settled_while_sessions_is_off_is_whole_when_it_is_on_again(tmp_path, nurseries):
    world = World("rolled back", tmp_path, nurseries)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        ruins = [ruin for ruin in pool.map(world.kill, _named(world.points)) if ruin is not None]
        list(pool.map(world.settle_late, ruins))


def _named(points: list[Point]) -> list[Point]:
    """The points of an undo, of what it does as a whole, and of an edit, without those of each owner."""
    return [point for point in points if point[0].startswith(("undo.", "sessions.", "joint."))]
