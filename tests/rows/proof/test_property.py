"""Whatever agents and a hand do to whatever tables: what is taken back is gone, and the rest stays."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Awaitable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from takeback.errors import ConflictError, NotFoundError, TakebackError
from takeback_acts.rows.module import RowsModule
from takeback_core.undo.module import UndoModule
from tests.rows.proof import schemas
from tests.rows.proof.invariants import require_agreement, require_settled, require_whole
from tests.rows.proof.persons import Person
from tests.rows.proof.stage import LONG_AGO, Stage, stage

_STEPS = 14


class Story:
    """One database, two agents, and perhaps a hand: what they do is drawn from one seed."""

    def __init__(self, opened: Stage, person: Person, chance: Random) -> None:
        self.opened = opened
        self.person = person
        self.chance = chance
        self.hands = chance.random() < 0.5
        # Newest first, one agent, and nobody else: then nothing may stand in the way of anything.
        self.ordered = not self.hands and chance.random() < 0.6
        self.sketches = schemas.drawn(chance)
        self.said = 0
        self.overwritten: set[tuple[str, str]] = set()

    async def tell(self) -> None:
        """All of it."""
        with closing(self.person.connect()) as db:
            for statement in [schemas.LOG[self.person.engine], *self._statements()]:
                db.execute(statement)
        await self.opened.connect({"main": self.person})
        self.first, self.dump = self.person.rows(), self.person.dump()
        for _ in range(_STEPS):
            await self._step()
            await self._require_truth()
        await (self._end_with_hands() if self.hands else self._end_alone())

    def _statements(self) -> list[str]:
        return [text for sketch in self.sketches for text in sketch.statements(self.person.engine)]

    async def _step(self) -> None:
        kind = self.chance.random()
        if kind < 0.2 and self.hands:
            self._hand()
        elif kind < 0.65:
            await self._agent()
        else:
            await self._take_back()

    # ------------------------------------------------------------------ who writes

    def _hand(self) -> None:
        sql, values = self._sql(f"hand {self._next()}")
        note(f"hand: {sql} {values}")
        marks = sql.replace("?", "%s") if self.person.engine == "postgresql" else sql
        with suppress(psycopg.IntegrityError, sqlite3.IntegrityError):
            self.person.sql(marks, values)

    async def _agent(self) -> None:
        name = "juno" if self.ordered else self.chance.choice(("juno", "vega"))
        agent = self.opened.agent(name, session=f"s {name}", turn=self.chance.choice(("t1", "t2")))
        sql, values = self._sql(f"{name} {self._next()}")
        note(f"{name}: {sql} {values}")
        before, words = self.person.dump(), self._words()
        if self.person.engine == "postgresql":
            for number in range(1, len(values) + 1):
                sql = sql.replace("?", f"${number}", 1)
        error = await _refusal(agent.rows.execute(sql=sql, parameters=values))
        if error is not None:
            assert error.code == "rows.constraint"
            assert self.person.dump() == before
        self.overwritten |= words - self._words()

    def _sql(self, word: str) -> tuple[str, list[Any]]:
        sketch, chance = self.chance.choice(self.sketches), self.chance
        key = sketch.some_key(chance)
        where = " AND ".join(f"{name} = ?" for name in key)
        up = ["up"] if sketch.up else []
        ups = [sketch.some_up(chance) for _ in up]
        kind = chance.random()
        if kind < 0.4:
            columns = [*key, "v", "w", *up]
            marks = ", ".join("?" * len(columns))
            values = [*key.values(), chance.randint(0, 9), word, *ups]
            return f"INSERT INTO {sketch.name} ({', '.join(columns)}) VALUES ({marks})", values
        if kind < 0.6:
            return f"DELETE FROM {sketch.name} WHERE {where}", list(key.values())
        if kind < 0.7:
            return f"UPDATE {sketch.name} SET v = v + 1", []
        if kind < 0.8:
            other = sketch.some_key(chance)
            sets = ", ".join(f"{name} = ?" for name in other)
            return f"UPDATE {sketch.name} SET {sets} WHERE {where}", [*other.values(), *key.values()]
        columns = chance.choice((["w"], ["w", *up]))
        sets = ", ".join(f"{name} = ?" for name in columns)
        values = [word, *ups][: len(columns)]
        return f"UPDATE {sketch.name} SET {sets} WHERE {where}", [*values, *key.values()]

    def _next(self) -> int:
        self.said += 1
        return self.said

    # ------------------------------------------------------------------ who takes back

    async def _take_back(self) -> None:
        rows = [row for row in await self.opened.rows() if row["role"] != "counter"]
        done = [row["id"] for row in rows if row["role"] == "act" and row["state"] == "done"]
        undone = [row["id"] for row in rows if row["state"] == "undone" or row["role"] == "undo"]
        undone = [row["id"] for row in rows if row["id"] in undone and row["state"] in ("done", "undone")]
        skip = {"skip_conflicts": self.chance.random() < 0.5}
        ways: list[tuple[str, dict[str, Any]]] = [
            ("rewind", {"session": "s juno", **skip}),
            ("rewind", {"session": "s vega", "turn": "t2", **skip}),
            ("rewind", {"since": LONG_AGO, **skip}),
        ]
        ways = ways[:1] if self.ordered else ways
        chosen = done[-1:] if self.ordered else done
        ways += [("run", {"id": self.chance.choice(chosen)})] * 4 if chosen else []
        ways += [("redo", {"id": self.chance.choice(undone)})] * 3 if undone else []
        await self._try(*self.chance.choice(ways))

    async def _try(self, verb: str, asked: dict[str, Any]) -> None:
        """What a hand wrote stays, but for what a redo does to it once more; a refusal changes nothing."""
        note(f"{verb} {asked}")
        before, words = self.person.dump(), self._words()
        if await _refusal(self._taken_back(verb, asked)) is not None:
            assert self.person.dump() == before
        assert words - self._words() <= (self.overwritten if verb == "redo" else set()), (verb, asked)

    async def _taken_back(self, verb: str, asked: dict[str, Any]) -> None:
        person, redo = self.opened.person(), {"redo": True} if verb == "redo" else {}
        plan = (await person.undo.preview(**asked, **redo)).plan
        await getattr(person.undo, verb)(**asked, digest=plan.digest)

    def _words(self) -> set[tuple[str, str]]:
        """What a hand wrote, and where: nobody else ever writes it."""
        return {
            (table, value)
            for table, rows in self.person.rows().items()
            for row in rows.values()
            for value in row
            if value.startswith('"hand ')
        }

    # ------------------------------------------------------------------ what is true

    async def _require_truth(self) -> None:
        rows = await self.opened.rows()
        require_settled(rows)
        require_agreement(rows, {"main": self.person.journal()}, parts=True)
        if not self.hands:
            require_whole(self.person.journal(), self.first, self.person.rows(), live=False)

    async def _end_alone(self) -> None:
        """Nobody else wrote: all of it can be taken back, to the byte, and be done again."""
        now, known = self.person.dump(), await self.opened.ids("undo")
        error = await _refusal(self.opened.person().undo.rewind(since=LONG_AGO))
        if error is not None:
            # An act that was taken back from the middle may have had rows that an older state refers to.
            assert not self.ordered
            assert " [" in error.message
            assert self.person.dump() == now
            return
        assert self.person.dump() == self.dump
        for undo in (await self.opened.ids("undo"))[len(known) :]:
            await self.opened.person().undo.redo(id=undo)
            assert self.person.dump() == now
        await self._require_truth()

    async def _end_with_hands(self) -> None:
        """What is left standing says why."""
        words = self._words()
        outcome = await self.opened.person().undo.rewind(since=LONG_AGO, skip_conflicts=True)
        assert words <= self._words()
        named = {conflict.act for conflict in outcome.plan.conflicts}
        named |= {step.act for step in outcome.plan.steps if step.stays or step.reason}
        left = {
            row["id"] for row in await self.opened.rows() if row["role"] == "act" and row["state"] == "done"
        }
        assert left <= named, (left - named, outcome.plan)
        await self._require_truth()


async def _refusal(call: Awaitable[object]) -> TakebackError | None:
    try:
        await call
    except (ConflictError, NotFoundError) as error:
        return error
    return None


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_what_is_taken_back_is_gone_and_the_rest_stays(engine, request):
    server = request.getfixturevalue("postgres") if engine == "postgresql" else None

    @settings(max_examples=25)
    @given(st.integers(0, 2**32 - 1))
    def check(seed):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="takeback-")))
            person = Person("sqlite", str(folder), "person")
            if server is not None:
                person = Person("postgresql", str(server.socket), server.fresh())
                stack.callback(server.drop, person.database)
            else:
                sqlite3.connect(folder / "person.db").close()
            asyncio.run(_tell(folder, person, Random(seed)))

    check()


async def _tell(folder: Path, person: Person, chance: Random) -> None:
    async with stage(folder / "home", folder / "files", modules=[UndoModule, RowsModule]) as opened:
        await Story(opened, person, chance).tell()
