"""A process that has imported everything and forks a child for each kill, so that a kill costs no start-up.

It reads one request a line and answers with how the child ended: `python -m tests.rows.proof.nursery`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import traceback
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import takeback_acts.rows.floor
import takeback_acts.rows.sessions.postgresql
import takeback_acts.rows.sessions.sqlite  # noqa: F401
from tests.rows.proof.invariants import require_agreement, require_settled
from tests.rows.proof.persons import Person
from tests.rows.proof.points import Points
from tests.rows.proof.scenarios import FORCED, SCENARIOS
from tests.rows.proof.stage import LONG_AGO, Stage, stage

_TOUCHED = (
    "SELECT t.resource, t.before, t.after FROM undo_touched t JOIN undo_acted a ON a.seq = t.act"
    " WHERE a.id = '{}' ORDER BY t.resource"
)


class Job:
    """What one child does over a home and databases, and what it says of it in a file that outlives it."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.scenario = {**SCENARIOS, FORCED.name: FORCED}[request["scenario"]]
        self.place = Path(request["place"])
        self.persons = {name: Person(**told) for name, told in request["persons"].items()}
        self._told = Path(request["told"])
        self._points = Points(tuple(request["kill"]) if request["kill"] else None)

    def open(self) -> AbstractAsyncContextManager[Stage]:
        return stage(self.place / "home", self.place / "files")

    def tell(self, **facts: Any) -> None:
        with self._told.open("a") as file:
            file.write(json.dumps(facts) + "\n")

    async def prepare(self) -> None:
        """Connect the databases, and do what comes before in peace."""
        async with self.open() as opened:
            await opened.connect(self.persons)
            self.tell(world=await self._world(opened))
            for call in self.scenario.before:
                await call(opened)

    async def act(self) -> None:
        """Make the calls, and say before the first and after each what the world is like."""
        async with self.open() as opened:
            await self._tell_world(opened)
            self._points.begin()
            for call in self.scenario.calls:
                await call(opened)
                await self._tell_world(opened)
        self.tell(points=self._points.passed)

    async def _tell_world(self, opened: Stage) -> None:
        """What it is like is known from when nobody was killed."""
        self.tell(world=None if self._points.kill else await self._world(opened))

    async def reopen(self) -> None:
        """Open what a kill left, which settles it."""
        self._points.begin()
        async with self.open():
            pass

    async def settle(self) -> None:
        """Open what a kill left, which settles it; look; then take everything back, and do it again."""
        self._points.begin()
        async with self.open() as opened:
            self.tell(points=list(self._points.passed), world=await self._world(opened))
            await self._require(opened)
            person = opened.person()
            rewound = await person.undo.rewind(since=LONG_AGO)
            self.tell(world=await self._world(opened))
            await self._require(opened)
            if rewound.act is not None:
                await person.undo.redo(id=rewound.act)
            self.tell(world=await self._world(opened))
            await self._require(opened)

    async def _require(self, opened: Stage) -> None:
        rows = await opened.rows()
        require_settled(rows)
        require_agreement(rows, {name: person.journal() for name, person in self.persons.items()})

    async def _world(self, opened: Stage) -> dict[str, Any]:
        files = {one.name: one.read_text() for one in sorted(opened.folder.iterdir())}
        tables = {name: person.dump() for name, person in self.persons.items()}
        return {"files": files, "tables": tables, "log": await self._standing(opened)}

    async def _standing(self, opened: Stage) -> list[Any]:
        """What the log says of each act and undo, but for those that came to nothing."""
        return [
            [
                *(row[name].replace(str(self.place), "") for name in ("role", "tool", "summary", "state")),
                await self._touched(opened, row["id"]),
            ]
            for row in await opened.rows()
            if row["state"] != "abandoned" and row["role"] != "counter"
        ]

    async def _touched(self, opened: Stage, id: str) -> list[list[str]]:
        found = await opened.kernel.store.read(lambda db: db.execute(_TOUCHED.format(id)).fetchall())
        return [[*row] for row in found if not row["resource"].startswith("files:")]


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
