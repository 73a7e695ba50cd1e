"""A process is killed at every statement; the next one finds all or nothing, and a log that is true."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import pytest

from tests.rows.proof.lanes import Lane
from tests.rows.proof.points import Point
from tests.rows.proof.ruins import content
from tests.rows.proof.scenarios import SCENARIOS

_AT_ONCE = 2
_SENT = "commit.sent"
# Among them these have every way of settling.
_KILLED_TWICE = ("acts", "rewind of two databases", "rewind of rows and files")


@pytest.fixture(params=["sqlite", "postgresql"])
def lanes(request, tmp_path) -> Iterator[list[Lane]]:
    """Lanes on one engine, which do the same beside each other."""
    server = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    made = [Lane(tmp_path, f"lane{number}", server) for number in range(_AT_ONCE)]
    yield made
    for lane in made:
        lane.close()


class World:
    """One scenario: how it goes when nobody is killed, and what becomes of what kills leave of it."""

    def __init__(self, scenario: str, lanes: list[Lane]) -> None:
        self.scenario = scenario
        self.killed = 0
        self._lanes: SimpleQueue[Lane] = SimpleQueue()
        self._seen: set[tuple[int, str]] = set()
        self.ways: dict[frozenset[str], tuple[Point, list[Point]]] = {}
        for lane in lanes:
            self._prepare(lane)
            self._lanes.put(lane)
        lane = lanes[0]
        _, told = lane.do("act", scenario)
        self.points: list[Point] = [(name, n) for name, n in told[-1]["points"]]
        self.worlds = [line["world"] for line in told[:-1]]

    def _prepare(self, lane: Lane) -> None:
        lane.create()
        self.first = lane.do("prepare", self.scenario)[1][0]["world"]["tables"]
        lane.mark("ready")

    def kill(self, *points: Point) -> None:
        """Kill the process that makes the calls, and those that settle what is left, and look at the end."""
        lane = self._lanes.get()
        try:
            said = self._killed(lane, points)
            # What is on its way to a server arrives when it likes.
            ruin = (said, content(lane.folder, lane.persons.values()))
            if ruin not in self._seen or points[0][0] == _SENT:
                self._seen.add(ruin)
                self._settle(lane, said, points)
        finally:
            self._lanes.put(lane)

    def _killed(self, lane: Lane, points: tuple[Point, ...]) -> int:
        lane.restore("ready")
        killed, told = lane.do("act", self.scenario, points[0])
        self.killed += killed
        for point in points[1:]:
            self.killed += lane.do("reopen", self.scenario, point)[0]
        return sum("world" in line for line in told) - 1

    def _settle(self, lane: Lane, said: int, points: tuple[Point, ...]) -> None:
        _, (settled, rewound, redone) = lane.do("settle", self.scenario)
        told = (self.scenario, points)
        allowed = self.worlds[said : said + 2]
        assert settled["world"] in allowed, (*told, settled["world"], allowed)
        assert rewound["world"]["tables"] == self.first, told
        assert rewound["world"]["files"] == {}, told
        for what in ("tables", "files"):
            assert redone["world"][what] == settled["world"][what], told
        way: list[Point] = [(name, n) for name, n in settled["points"]]
        kind = frozenset(name for name, _ in way)
        if len(way) > len(self.ways.get(kind, (points, []))[1]):
            self.ways[kind] = (points[0], way)


def _all(work: Any, items: Any) -> None:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(work, items))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_kill_at_any_statement_loses_nothing(name, lanes):
    world = World(name, lanes)
    points = world.points[:: SCENARIOS[name].each]
    _all(world.kill, points)
    twice = [(first, again) for first, way in list(world.ways.values()) for again in way]
    if name in _KILLED_TWICE:
        _all(lambda two: world.kill(*two), twice)
    # What begins by itself may share a commit with others or not, which changes the count.
    assert world.killed > 0.9 * len(points)
