"""A process is really killed between any two steps; the next one finds nothing lost and no row that lies."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import pytest

from takeback import Kernel
from takeback_core.undo.module import UndoModule
from tests.undo.crash_cabinet import Cabinet
from tests.undo.crash_ruins import content
from tests.undo.crash_scenarios import BLIND, KILLED_TWICE, SCENARIOS
from tests.undo.house import House, house

_ROOT = Path(__file__).parents[2]
_AT_ONCE = 2
_OPEN = ("pending", "undoing")
_CUT_OFF = {"done": "finished after a restart", "abandoned": "taken back after a restart"}

Point = tuple[str, int]


class Nursery:
    """A process that forks a child for each job."""

    def __init__(self) -> None:
        self.killed = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.undo.crash_nursery"],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
        )

    def do(self, job: str, scenario: str, place: Path, kill: Point | None = None) -> list[dict[str, Any]]:
        """Have a job done in a place, and hear what it told; with `kill` it dies there if it passes there."""
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
        self.killed += end != 0
        return lines

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


class Ruin(NamedTuple):
    """What a kill left, how many of its calls the scenario had heard the end of, and where the kills were."""

    place: Path
    said: int
    kills: tuple[Point, ...]


class World:
    """One scenario: how it goes when nobody is killed, and what kills leave of it."""

    def __init__(self, scenario: str, place: Path, nurseries: SimpleQueue[Nursery]) -> None:
        self.scenario = scenario
        self.place = place
        self.killed = 0
        self._nurseries = nurseries
        self._looked: dict[tuple[int, str], Future[list[Point]]] = {}
        self._do("prepare", place / "prepared")
        peace = self._do("act", self._copy(place / "prepared", "peace"))
        self.points: list[Point] = [(name, n) for name, n in peace[-1]["points"]]
        self.worlds = [line["world"] for line in peace[:-1]]

    def kill(self, point: Point) -> Ruin:
        """Kill the process that makes the calls."""
        place = self._copy(self.place / "prepared", f"{point[0]}-{point[1]}")
        told = [line for line in self._do("act", place, point) if "world" in line]
        return Ruin(place, max(0, len(told) - 1), (point,))

    def kill_again(self, ruin: Ruin, point: Point) -> Ruin:
        """Kill the process that settles what the first one left."""
        place = self._copy(ruin.place, f"{ruin.place.name}-{point[0]}-{point[1]}")
        self._do("reopen", place, point)
        return Ruin(place, ruin.said, (*ruin.kills, point))

    def settle(self, ruin: Ruin) -> list[Point]:
        """Look at what the next process makes of a ruin; answers the points it passed in settling it.

        Ruins with the same content are looked at once.
        """
        looked: Future[list[Point]] = Future()
        first = self._looked.setdefault((ruin.said, content(ruin.place)), looked)
        if first is looked:
            try:
                looked.set_result(self._check(ruin))
            except BaseException as error:
                looked.set_exception(error)
        return first.result()

    def _check(self, ruin: Ruin) -> list[Point]:
        place = self._copy(ruin.place, f"{ruin.place.name}-settled")
        settled, rows, rewound, redone = self._do("settle", place)
        told = (self.scenario, ruin.kills)
        if SCENARIOS[self.scenario].whole:
            allowed = self.worlds[ruin.said : ruin.said + 2]
            assert settled["world"] in allowed, (*told, settled["world"], allowed)
        _check_rows(rows["rows"], ruin.kills)
        if SCENARIOS[self.scenario].peaceful:
            assert rewound["world"]["notes"] == {}, (*told, rewound)
        assert redone["world"]["notes"] == settled["world"]["notes"], (*told, redone)
        tried = [[what, state.replace("failed", "done")] for what, state in settled["world"]["acts"]]
        assert redone["world"]["acts"] == tried, (*told, redone)
        return [(name, n) for name, n in settled["points"]]

    def _do(self, job: str, place: Path, kill: Point | None = None) -> list[dict[str, Any]]:
        place.mkdir(exist_ok=True)
        nursery = self._nurseries.get()
        try:
            before = nursery.killed
            lines = nursery.do(job, self.scenario, place, kill)
            self.killed += nursery.killed - before
            return lines
        finally:
            self._nurseries.put(nursery)

    def _copy(self, place: Path, name: str) -> Path:
        return Path(shutil.copytree(place, self.place / name))


def _check_rows(rows: list[dict[str, Any]], kills: tuple[Point, ...]) -> None:
    """No row is left open or unsure, and an undo that was cut off says what became of it."""
    assert [row for row in rows if row["state"] in (*_OPEN, "unknown")] == [], kills
    for row in rows:
        assert row["lease_owner"] is None, (kills, row)
        if row["role"] == "undo" and row["reason"] is not None:
            assert row["reason"] == _CUT_OFF[row["state"]], (kills, row)
        if row["role"] == "act" and row["state"] == "undone":
            assert row["undone_in"] in {undo["id"] for undo in rows if undo["state"] == "done"}, (kills, row)


def _length(settled: tuple[Ruin, list[Point]]) -> int:
    return len(settled[1])


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_kill_at_any_point_loses_nothing(name, tmp_path, nurseries):
    world = World(name, tmp_path, nurseries)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        ruins = list(pool.map(world.kill, world.points))
        settled = zip(ruins, pool.map(world.settle, ruins), strict=True)
        # The longest of each kind of settling has all that a shorter one of the kind has.
        ways = {frozenset(name for name, _ in way): (ruin, way) for ruin, way in sorted(settled, key=_length)}
        again = [(ruin, point) for ruin, way in ways.values() for point in way if name in KILLED_TWICE]
        twice = list(pool.map(lambda kill: world.kill_again(*kill), again))
        list(pool.map(world.settle, twice))
    # What begins by itself at a start may share a commit with others or not, which changes the count.
    assert world.killed > 0.9 * len(ruins + twice)


@asynccontextmanager
async def _opened(ruin: Ruin) -> AsyncIterator[House]:
    cabinet = Cabinet(folder=ruin.place / "cabinet", merges=True)
    async with house(ruin.place / "home", notebook=cabinet) as opened:
        yield opened


@pytest.mark.anyio
async def test_an_owner_that_is_away_at_the_start_is_waited_for(tmp_path, nurseries):
    ruin = World("undo", tmp_path, nurseries).kill(("cabinet.cleared", 1))
    for _ in range(2):
        async with Kernel(ruin.place / "home", settings={}, modules=[UndoModule]) as kernel:
            acts = (await kernel.enter("cli:person").undo.list()).acts
            assert [act.state for act in acts] == ["pending", "undoing", "done"]
    async with _opened(ruin) as at:
        acts = (await at.person().undo.list()).acts
        assert [act.state for act in acts] == ["done", "undone", "done"]
        assert at.values == {"a": "1"}


@pytest.mark.anyio
async def test_an_inverse_that_records_nothing_is_not_taken_for_put_back(tmp_path, nurseries):
    """Only looking can tell that it ran, and nobody can take it back."""
    world = World(BLIND.name, tmp_path, nurseries)
    for point in world.points:
        async with _opened(world.kill(point)) as at:
            acts = (await at.person().undo.list(agent="juno")).acts
            for act in acts:
                there = act.touched[0].resource.removeprefix("notes:") in at.values
                assert act.state in ("done" if there else "undone", "unknown"), (point, act)
            unsure = sum(act.state == "unknown" for act in acts)
            assert unsure == (len(acts) - len(at.values)) % len(acts), (point, acts)


@pytest.mark.anyio
async def test_what_a_hand_writes_before_the_next_start_stays(tmp_path, nurseries):
    world = World("rewind", tmp_path, nurseries)
    for point in (one for one in world.points if one[0].startswith("undo.")):
        ruin = world.kill(point)
        path = ruin.place / "cabinet" / "notes" / "b"
        path.write_text("mine")
        async with _opened(ruin) as at:
            assert at.values["b"] == "mine", point
            await at.person().undo.rewind(session="s1", skip_conflicts=True)
            assert at.values["b"] == "mine", point
            states = [row["state"] for row in await at.rows()]
            assert not {"pending", "undoing"} & set(states), point
        assert path.read_text() == "mine"
