"""A process that has imported everything and forks a child for each kill, so that a kill costs no start-up.

It reads one request a line and answers with how the child ended: `python -m tests.undo.crash_nursery`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from takeback import faults
from tests.undo.crash_cabinet import Cabinet
from tests.undo.crash_scenarios import BLIND, LONG_AGO, SCENARIOS, Scenario
from tests.undo.house import House, house
from tests.undo.ledger import Book, ledger_module

_PARTS = (
    "SELECT a.summary, t.resource FROM undo_touched t JOIN undo_acted a ON a.seq = t.act"
    " WHERE t.taken_in IS NOT NULL ORDER BY t.act, t.resource"
)


class Passed:
    """Notes every point that is passed, and kills the process at one of them."""

    def __init__(self, kill: tuple[str, int] | None) -> None:
        self.points: list[tuple[str, int]] = []
        self._counts: Counter[str] = Counter()
        self._kill = kill

    def __call__(self, name: str) -> None:
        self._counts[name] += 1
        here = (name, self._counts[name])
        self.points.append(here)
        if here == self._kill:
            os.kill(os.getpid(), signal.SIGKILL)


class Job:
    """What one child does in a home, and what it says of it; `told` is a file that outlives it."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.scenario: Scenario = {**SCENARIOS, BLIND.name: BLIND}[request["scenario"]]
        self.place = Path(request["place"])
        self.told = Path(request["told"])
        self.passed = Passed(tuple(request["kill"]) if request.get("kill") else None)

    def open(self) -> AbstractAsyncContextManager[House]:
        folder = self.place / "cabinet"
        self.cabinet = Cabinet(folder=folder, merges=True, inverse=self.scenario.inverse)
        self.book = Book(self.place / "ledger.db")
        modules = [ledger_module(self.book)] if self.scenario.ledger else []
        return house(self.place / "home", *modules, notebook=self.cabinet)

    def tell(self, **facts: Any) -> None:
        with self.told.open("a") as file:
            file.write(json.dumps(facts) + "\n")

    async def prepare(self) -> None:
        """Do what comes before, in peace."""
        async with self.open() as opened:
            for call in self.scenario.before:
                await call(opened)
        for key, value in self.scenario.hand.items():
            (self.place / "cabinet" / "notes" / key).write_text(value)

    async def act(self) -> None:
        """Make the calls, and say before the first and after each what the world is like."""
        if not self.scenario.calls:  # then the opening itself is what a kill meets
            faults.install(self.passed)
        async with self.open() as opened:
            await opened.rows()  # lets what begins at the start come to its end
            self.tell(world=await self._world(opened))
            faults.install(self.passed)
            self.cabinet.failures = list(self.scenario.failures)
            self.book.ends = list(self.scenario.ends)
            for call in self.scenario.calls:
                await call(opened)
                self.tell(world=await self._world(opened))
        self.tell(points=self.passed.points)

    async def reopen(self) -> None:
        """Open what a kill left, which settles it."""
        faults.install(self.passed)
        async with self.open():
            pass

    async def settle(self) -> None:
        """Open what a kill left, which settles it, then take everything back and redo it."""
        faults.install(self.passed)
        async with self.open() as opened:
            self.tell(points=list(self.passed.points), world=await self._world(opened))
            self.tell(rows=await opened.rows())
            person = opened.person()
            skip = not self.scenario.peaceful
            rewound = await person.undo.rewind(since=LONG_AGO, skip_conflicts=skip)
            self.tell(world=await self._world(opened))
            if rewound.act is not None:
                await person.undo.redo(id=rewound.act)
            self.tell(world=await self._world(opened))

    async def _world(self, opened: House) -> dict[str, Any]:
        rows = await opened.rows()
        assert self.cabinet.read() == self.cabinet.values
        return {
            "notes": self.cabinet.read() | self._entries(),
            "acts": _standing(rows, "act"),
            "undos": _standing(rows, "undo"),
            "parts": [list(row.values()) for row in await opened.rows(_PARTS)],
        }

    def _entries(self) -> dict[str, str]:
        if not self.scenario.ledger:
            return {}
        return {f"ledger:{key}": value for key, value in self.book.read().items()}


def _standing(rows: list[dict[str, Any]], role: str) -> list[list[str]]:
    """Summary and state of each row of a role, but for those that came to nothing."""
    found = [row for row in rows if row["role"] == role and row["state"] != "abandoned"]
    return [[row["summary"], row["state"]] for row in found]


def _child(request: dict[str, Any]) -> None:
    """Do the job and leave, without running anything of the parent's on the way out."""
    try:
        job = Job(request)
        jobs: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "prepare": job.prepare,
            "act": job.act,
            "reopen": job.reopen,
            "settle": job.settle,
        }
        asyncio.run(jobs[request["job"]]())
    except BaseException:
        with Path(request["told"]).open("a") as file:
            file.write(json.dumps({"crash": traceback.format_exc()}) + "\n")
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Fork for each request, wait, and answer with the signal or the status of its end."""
    gc.freeze()  # else a collection in a child would copy all that it shares
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _child(json.loads(line))
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
