"""Any sequence of acts of two owners, one with transactions, and of undos that may fail at every place."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar

from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from takeback.errors import TakebackError
from tests.undo.house import House, house
from tests.undo.ledger import Book, ledger_module
from tests.undo.notebook import Notebook, version

T = TypeVar("T")
LONG_AGO = "2000-01-01T00:00:00Z"
KEYS = ("a", "b")
BLOCKED = ("undo.conflict", "undo.dependents", "undo.not_undoable")
STANDING = (
    "SELECT t.resource, t.after, t.taken_in, a.state"
    " FROM undo_touched t JOIN undo_acted a ON a.seq = t.act"
    " WHERE a.role = 'act' AND a.state <> 'abandoned' ORDER BY t.stands"
)


class World(NamedTuple):
    """What both owners have, and the states of all acts and undos that came to something."""

    values: dict[str, str]
    states: dict[str, str]


class Both(RuleBasedStateMachine):
    """A house with notes and a ledger. What a step does is drawn from its seed, and noted."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="takeback-"))
        self.notebook, self.book = Notebook(), Book(self.place / "ledger.db")
        self.runner = asyncio.Runner()
        self.words = 0
        self.open()

    def do(self, work: Awaitable[T]) -> T:
        async def wait() -> T:
            return await work

        return self.runner.run(wait())

    def open(self) -> None:
        self.stack = AsyncExitStack()
        opened = house(self.place / "home", ledger_module(self.book), notebook=self.notebook)
        self.house: House = self.do(self.stack.enter_async_context(opened))

    def world(self) -> World:
        rows = self.do(self.house.rows("SELECT id, state FROM undo_acted WHERE role <> 'counter'"))
        values = {f"notes:{key}": value for key, value in self.notebook.values.items()}
        values |= {f"ledger:{key}": value for key, value in self.book.read().items()}
        states = {row["id"]: row["state"].replace("failed", "done") for row in rows}
        return World(values, {one: state for one, state in states.items() if state != "abandoned"})

    # ------------------------------------------------------------------ what is done

    @rule(seed=st.integers(0, 2**64 - 1))
    def step(self, seed: int) -> None:
        chance = Random(seed)
        ways = [self.enter, self.put, self.rename, self.take_back, self.redo, self.rewind, self.start_again]
        chance.choices(ways, [30, 15, 10, 25, 25, 10, 3])[0](chance)

    def enter(self, chance: Random) -> None:
        """One or both entries, perhaps not at all, or without anybody hearing that it was done."""
        keys = chance.sample(KEYS, chance.randint(1, 2))
        values = {key: chance.choice([None, self._word(), "common"]) for key in keys}
        then = chance.choice(["", "", "", "fail", "unsure"])
        note(f"enter {values} {then}")
        self._heard(self._agent(chance).ledger.enter(values=values, then=then))

    def put(self, chance: Random) -> None:
        key, value = chance.choice(KEYS), chance.choice([self._word(), "common"])
        note(f"put {key} {value}")
        self.do(self._agent(chance).notes.put(key=key, value=value))

    def rename(self, chance: Random) -> None:
        one, other = chance.sample(KEYS, 2)
        if one in self.notebook.values and other not in self.notebook.values:
            note(f"rename {one} {other}")
            self.do(self._agent(chance).notes.rename(key=one, to=other))

    def take_back(self, chance: Random) -> None:
        if acts := self._acts("done", "failed"):
            asked: dict[str, Any] = {"id": chance.choice(acts[-5:])}
            asked["dependents"] = chance.random() < 0.4
            if chance.random() < 0.3:
                asked["only"] = [f"{chance.choice(['notes', 'ledger'])}:{chance.choice(KEYS)}"]
            self._undo(chance, "run", asked)

    def redo(self, chance: Random) -> None:
        if acts := self._acts("undone"):
            self._undo(chance, "redo", {"id": chance.choice(acts[-5:])})

    def rewind(self, chance: Random) -> None:
        part = chance.choice([{"session": "s1"}, {"session": "s2"}, {"since": LONG_AGO}])
        self._undo(chance, "rewind", {**part, "skip_conflicts": chance.random() < 0.5})

    def start_again(self, chance: Random) -> None:
        """Also after an entry of which the log never heard the end."""
        if chance.random() < 0.5:
            self._heard(self._agent(chance).ledger.enter(values={"a": self._word()}, then="forget"))
        values = self.world().values
        note("start again")
        self.do(self.stack.aclose())
        self.open()
        assert self.world().values == values

    # ------------------------------------------------------------------ what is said of it

    def _undo(self, chance: Random, verb: str, asked: dict[str, Any]) -> None:
        """Preview, run, and hold one against the other; where it fails, all is as before."""
        person, before = self.house.person(), self.world()
        redo = {"redo": True} if verb == "redo" else {}
        plan, refused = self._heard(person.undo.preview(**asked, **redo))
        assert self.world() == before
        self.book.write("free", None)
        failing = self._arm(chance)
        note(f"{verb} {asked} {failing}")
        outcome, error = self._heard(getattr(person.undo, verb)(**asked))
        self.book.ends = self.book.failures = self.notebook.failures = []
        after = self.world()
        self.book.write("free", None)
        if error is None:
            assert refused is None
            assert not outcome.results or outcome.plan == plan.plan or outcome.act is None
            self._require_promised(before, after, outcome)
            return
        assert after == before
        if refused is not None:
            assert error.code == refused.code
        else:
            assert error.code in BLOCKED or (error.code == "undo.failed" and failing), error
            assert error.code != "undo.failed" or "as it was before" in error.hint

    def _arm(self, chance: Random) -> bool:
        """Have a step of either owner fail, or the ledger say no at the end."""
        how = chance.choice(["", "", "notes", "ledger", "end"])
        if how == "notes":
            self.notebook.break_next(chance.choice(["before", "inside", "late"]), after=chance.randrange(2))
        elif how == "ledger":
            failure = chance.choice(["before", "inside", "late"])
            self.book.failures = [*[""] * chance.randrange(2), failure]
        elif how == "end":
            self.book.ends = [chance.choice(["prepare", "commit", "lost"])]
        return bool(how)

    def _require_promised(self, before: World, after: World, outcome: Any) -> None:
        runs = [step for step in outcome.plan.steps if step.status in ("clean", "merge")]
        promised = {one.resource: one.version for step in runs for one in step.effects if one.version}
        if outcome.act is None:
            promised = {}
        for name in {*before.values, *after.values, *promised}:
            expected = promised.get(name, version(before.values.get(name)))
            assert version(after.values.get(name)) == expected, (name, outcome)
        for result in outcome.results:
            assert after.states[result.id] == result.state.replace("failed", "done")

    # ------------------------------------------------------------------ who and what

    def _heard(self, work: Awaitable[Any]) -> tuple[Any, TakebackError | None]:
        try:
            return self.do(work), None
        except TakebackError as error:
            return None, error

    def _agent(self, chance: Random) -> Any:
        return self.house.agent(session=chance.choice(["s1", "s2"]))

    def _acts(self, *states: str) -> list[str]:
        rows = self.do(self.house.rows("SELECT id, state FROM undo_acted WHERE role = 'act' ORDER BY seq"))
        return [row["id"] for row in rows if row["state"] in states]

    def _word(self) -> str:
        self.words += 1
        return f"w{self.words}"

    # ------------------------------------------------------------------ what is always so

    @invariant()
    def no_row_is_open(self) -> None:
        rows = self.do(self.house.rows("SELECT state FROM undo_acted"))
        assert not {"pending", "undoing", "unknown"} & {row["state"] for row in rows}

    @invariant()
    def each_is_as_the_act_left_it_that_stands_since_last(self) -> None:
        should: dict[str, str] = {}
        for row in self.do(self.house.rows(STANDING)):
            should.setdefault(row["resource"], "absent")
            if row["state"] != "undone" and row["taken_in"] is None:
                should[row["resource"]] = row["after"]
        values = self.world().values
        assert {name: version(values.get(name)) for name in should} == should

    @invariant()
    def events_are_told_once(self) -> None:
        told = [of for kind, of in self.do(self.house.events("undo.recorded"))]
        assert sorted(told) == sorted(
            row["id"]
            for row in self.do(
                self.house.rows("SELECT id FROM undo_acted WHERE role = 'act' AND state <> 'abandoned'")
            )
        )

    def teardown(self) -> None:
        try:
            before = self.world()
            outcome = self.do(self.house.person().undo.rewind(since=LONG_AGO, skip_conflicts=True))
            assert self.world().values == {}
            if outcome.act is not None:
                self.do(self.house.person().undo.redo(id=outcome.act))
                assert self.world().values == before.values
        finally:
            self.do(self.stack.aclose())
            self.runner.close()
            shutil.rmtree(self.place)


test_both_can_be_taken_back = Both.TestCase
test_both_can_be_taken_back.settings = settings(max_examples=40, stateful_step_count=25)
