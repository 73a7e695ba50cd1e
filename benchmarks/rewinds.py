"""Taking back 10,000 acts on rows at once, against as many plain updates, in one transaction each."""

from __future__ import annotations

import gc
import random
import tempfile
import time
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

from benchmarks.acts import connected
from benchmarks.databases import BODY, Database, Postgres, Sqlite, postgres
from benchmarks.measure import Figure, compare
from takeback import moments
from takeback_acts.rows import ids
from takeback_acts.rows.entries import Entry
from takeback_acts.rows.journal import Ledger

_ACTS = 10_000
_THROUGH = 1_000
_ROWS = 5_000
_ROUNDS = 9


class Rewinder:
    """A database with 10,000 acts in its journal: a third each have added, changed and deleted a row."""

    def __init__(self, database: Database) -> None:
        self.link: Any = database.link()
        self.dialect = database.dialect
        self.ledger = Ledger(self.dialect, self.dialect.catalog(self.link))
        self._random = random.Random(1)
        self._there = list(range(_ROWS))
        self._act()

    def _act(self) -> None:
        self.dialect.begin(self.link)
        self.dialect.install(self.link, self.ledger.catalog)
        for number in range(_ACTS):
            entry = Entry(ids.new(), moments.stamp(), "bench", str(number), "rows.execute")
            self.ledger.write(
                self.link, entry, lambda link, number=number: link.execute(*self._statement(number))
            )
        self.dialect.commit(self.link)

    def _statement(self, number: int) -> tuple[str, tuple[object, ...]]:
        mark, kind = self.dialect.mark, number % 3
        if kind == 0:
            self._there.append(_ROWS + number)
            return f"INSERT INTO skill VALUES ({mark}, {mark}, {mark}, 2)", (_ROWS + number, "new", BODY)
        place = self._random.randrange(len(self._there))
        if kind == 1:
            sql = f"UPDATE skill SET title = {mark}, body = {mark} WHERE id = {mark}"
            return sql, (f"set {number}", f"set {BODY}", self._there[place])
        self._there[place], self._there[-1] = self._there[-1], self._there[place]
        return f"DELETE FROM skill WHERE id = {mark}", (self._there.pop(),)

    async def rewind(self) -> float:
        """Seconds of taking all of it back; then, not counted, it is done again."""
        started = time.perf_counter()
        undo = self._take_back(None)
        taken = time.perf_counter() - started
        self._take_back(undo)
        gc.collect()
        return taken

    def _take_back(self, undo: str | None) -> str:
        self.dialect.begin(self.link)
        given = {"grp": "bench"} if undo is None else {"ids": [undo]}
        stored = self.ledger.entries(self.link, **given)
        made = ids.new()
        done = self.ledger.take_back(self.link, stored, id=made, at=moments.stamp())
        if not done.clean or len(stored) != (1 if undo else _ACTS):
            raise RuntimeError("not all of it could be taken back")
        self.dialect.commit(self.link)
        return made

    async def preview(self) -> float:
        """Seconds of what taking all of it back would come to."""
        started = time.perf_counter()
        self.dialect.begin(self.link)
        done = self.ledger.preview(self.link, self.ledger.entries(self.link, grp="bench"))
        self.dialect.rollback(self.link)
        if not done.clean:
            raise RuntimeError("not all of it could be taken back")
        taken = time.perf_counter() - started
        gc.collect()
        return taken


async def figures() -> list[Figure]:
    """Rewind and preview at the level of the journal, on each engine; beside it, a rewind by the kernel."""
    found = []
    with tempfile.TemporaryDirectory() as folder, postgres() as server:
        place = Path(folder)
        ours, floor = Sqlite(place / "ours.db", _ROWS), Sqlite(place / "floor.db", _ROWS)
        found += await _rewind(ours, floor, 5)
        found += await _rewind(Postgres(server, _ROWS), Postgres(server, _ROWS), 2.5)
        await _through(Sqlite(place / "kernel.db", _ROWS), place / "home")
    return found


async def _rewind(ours: Database, floor: Database, limit: float) -> list[Figure]:
    rewinder = Rewinder(ours)
    keys = random.Random(2).choices(range(_ROWS), k=_ACTS)
    with closing(floor.plain()) as plain:

        async def bare() -> float:
            made = time.time_ns()
            rows = [(f"plain {made}", f"{made} {BODY}", keys[each]) for each in range(_ACTS)]
            started = time.perf_counter()
            floor.updates(plain, rows)
            return time.perf_counter() - started

        samples = {"rewind": rewinder.rewind, "bare": bare, "preview": rewinder.preview}
        taken = await compare(samples, rounds=_ROUNDS)
    rewinder.link.close()
    what = f"{_ACTS:,} acts on rows, {ours.name}"
    return [
        Figure(f"rewind of {what}", taken["rewind"], taken["bare"], "as many plain updates", limit),
        Figure(f"preview of {what}", taken["preview"], taken["rewind"], "the rewind", 0.6),
    ]


async def _through(database: Database, home: Path) -> None:
    """Print what an act costs when a session of them is rewound through the kernel."""
    async with AsyncExitStack() as stack:
        ctx = await connected(stack, home, main=database)
        for number in range(_THROUGH):
            args = {"table": "skill", "key": number, "set": {"title": "set"}}
            await ctx.call("rows.update", args)
        started = time.perf_counter()
        await ctx.call("undo.rewind", {"session": "bench"})
        taken = time.perf_counter() - started
    each = f"{taken / _THROUGH * 1e6:,.0f} us"
    print(f"       {each} for each of {_THROUGH:,} acts by undo.rewind, {database.name}")
