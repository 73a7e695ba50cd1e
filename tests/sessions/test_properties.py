"""Any conversation, rewound and edited at will: what is left is what the turns that are left have made."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from hypothesis import Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from takeback import Context, TakebackError
from takeback_acts.files.module import FilesModule
from takeback_core.sessions.module import SessionsModule
from tests.sessions.shadow import Shadow, Turn, Verdict
from tests.sessions.talk import SESSION
from tests.undo.house import House, house
from tests.undo.model import EVERYTHING

T = TypeVar("T")
KEYS = ["notes:a", "notes:b", "files:c", "files:d"]
seeds = st.integers(0, 2**64 - 1)


class Conversing(RuleBasedStateMachine):
    """An app that keeps a conversation and acts on notes and files, a person, and strangers.

    What a step does is drawn from seeds, and noted.
    """

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="takeback-"))
        self.work = (self.place / "work").resolve()
        self.work.mkdir()
        self.shadow = Shadow()
        self.words = 0
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        opening = house(self.place / "home", SessionsModule, FilesModule)
        self.house: House = self.do(self._stack.enter_async_context(opening))
        self.person = self.house.person()
        self.do(self.app().sessions.open(session=SESSION))

    def do(self, work: Awaitable[T]) -> T:
        """Run the loop until something is done."""

        async def wait() -> T:
            return await work

        return self._runner.run(wait())

    def app(self, turn: str | None = None, *, files: bool = False) -> Context:
        """The app; it may touch the notes, or the files."""
        return self.house.agent("juno", session=SESSION, turn=turn, scope=[self._scope(files)])

    def _scope(self, files: bool) -> str:
        return str(self.work) if files else EVERYTHING

    @initialize(seed=seeds)
    def begin(self, seed: int) -> None:
        """A calm house knows no strangers, so that nothing is ever in the way."""
        self.seed, self.steps = seed, 0
        self.calm = Random(seed).random() < 0.4

    @rule(seed=seeds)
    def step(self, seed: int) -> None:
        self.steps += 1
        chance = Random(f"{self.seed} {self.steps} {seed}")
        ways = [self.say, self.meddle, self.rewind, self.edit]
        chance.choices(ways, [50, 0 if self.calm else 12, 12, 26])[0](chance)

    # ------------------------------------------------------------------ what happens

    def say(self, chance: Random) -> None:
        """A message and its run; or the run of one that is due."""
        due = [turn for turn in self.shadow.turns if turn.state == "due"]
        if due:
            turn = due[0]
        else:
            turn = Turn(f"m{len(self.shadow.turns) + 1}", self._word())
            self.do(self.app().sessions.say(session=SESSION, turn=turn.name, text=turn.text))
            self.shadow.turns.append(turn)
        self.do(self.app().sessions.begin(session=SESSION, turn=turn.name))
        for _ in range(chance.choice([0, 1, 1, 2, 3])):
            self._act(chance, turn)
        turn.state = chance.choice(["done", "done", "cut"])
        self.do(self.app().sessions.end(session=SESSION, turn=turn.name, outcome=turn.state))

    def meddle(self, chance: Random) -> None:
        """A stranger's hand, or another agent, writes something."""
        key = chance.choice(KEYS)
        if chance.random() < 0.3:
            self._act(chance, None)
            return
        value = self._word()
        note(f"by hand: {key} = {value}")
        kind, _, name = key.partition(":")
        if kind == "notes":
            self.house.values[name] = value
        else:
            (self.work / name).write_text(value)
        self.shadow.change(key, value, None)

    def rewind(self, chance: Random) -> None:
        """The person takes back a message and all after it, and the conversation stays as it is."""
        acted = [index for index, turn in enumerate(self.shadow.turns) if turn.acts]
        if acted:  # the log knows no message that did nothing

            def call(turn: str, how: dict[str, Any]) -> Awaitable[Any]:
                return self.person.undo.rewind(session=SESSION, turn=turn, agent="juno", **how)

            self._go_back(chance, chance.choice(acted), call)

    def edit(self, chance: Random) -> None:
        """The person edits a message, with or without rolling back."""
        if not self.shadow.turns:
            return
        text = self._word()
        index = chance.randrange(len(self.shadow.turns))
        if chance.random() < 0.3:
            note(f"edit {index} {text}")
            self.do(self._edit(self.shadow.turns[index].name, {"text": text}))
            self.shadow.close(self.shadow.reached(index))
            self.shadow.edit(index, text)
            return
        how = {"text": text, "roll_back": True}
        taken = self.shadow.reached(index)
        done = self._go_back(chance, index, lambda turn, more: self._edit(turn, how | more))
        if done:
            self.shadow.close(taken)
            self.shadow.edit(index, text)

    def _edit(self, turn: str, how: dict[str, Any]) -> Awaitable[Any]:
        return self.person.sessions.edit(session=SESSION, turn=turn, agent="juno", **how)

    def _go_back(self, chance: Random, index: int, call: Any) -> bool:
        """Take a message and all after it back, and hold it against the shadow; whether it was done."""
        taken = self.shadow.reached(index)
        how: dict[str, Any] = {"skip_conflicts": True} if chance.random() < 0.4 else {}
        if chance.random() < 0.15:
            self.house.notebook.break_next(chance.choice(["before", "inside", "late"]))
        fails = bool(self.house.notebook.failures)
        verdict = self.shadow.judge(taken)
        note(f"back to {index} {how} {verdict} {'failing' if fails else ''}")
        try:
            answer = self.do(call(self.shadow.turns[index].name, how))
        except TakebackError as error:
            self._require_reason(error, verdict, failed=fails and not self.house.notebook.failures)
            return False
        finally:
            self.house.notebook.failures = []
        if not how:
            assert verdict.against <= verdict.unsure, (answer, verdict)
        elif hasattr(answer, "left"):
            left = self._named([one.model_dump() for one in answer.left])
            assert verdict.against - verdict.unsure <= left, (answer, verdict)
        self._compare(self.shadow.take_back(taken))
        return True

    def _require_reason(self, error: TakebackError, verdict: Verdict, *, failed: bool) -> None:
        if failed:
            assert error.code == "undo.failed"
        else:
            assert error.code in ("undo.conflict", "undo.dependents")
            assert self._named(error.data["plan"]["conflicts"]) & verdict.against, (error.data, verdict)

    # ------------------------------------------------------------------ what is always so

    @invariant()
    def everything_is_as_the_turns_that_are_left_have_made_it(self) -> None:
        assert self._now() == self.shadow.now

    @invariant()
    def the_conversation_is_as_if_it_had_always_been_so(self) -> None:
        said = self.do(self.app().sessions.messages(session=SESSION)).messages
        assert [(one.turn, one.text, one.state) for one in said] == [
            (turn.name, turn.text, turn.state) for turn in self.shadow.turns
        ]
        shown = self.do(self.app().sessions.show(session=SESSION))
        assert [(one.turn, one.acts) for one in shown.turns] == [
            (turn.name, len(turn.acts)) for turn in self.shadow.turns
        ]

    @invariant()
    def nothing_waits(self) -> None:
        assert self.do(self.house.rows("SELECT * FROM sessions_edit")) == []
        found = self.do(self.house.rows("SELECT DISTINCT state FROM undo_acted"))
        assert not {"pending", "undoing", "unknown"} & {row["state"] for row in found}

    def teardown(self) -> None:
        self.do(self._stack.aclose())
        self._runner.close()
        shutil.rmtree(self.place)

    # ------------------------------------------------------------------ keys and values

    def _act(self, chance: Random, turn: Turn | None) -> None:
        """The app acts in a turn, or else another agent in a session that may have the same name."""
        key = chance.choice(KEYS)
        kind, _, name = key.partition(":")
        ctx = self.app(turn.name if turn else None, files=kind == "files")
        if turn is None:
            session, scope = chance.choice([SESSION, "s2"]), self._scope(kind == "files")
            ctx = self.house.agent("max", session=session, turn="m1", scope=[scope])
        value = None if key in self.shadow.now and chance.random() < 0.25 else self._word()
        note(f"{turn.name if turn else 'max'}: {key} = {value}")
        if kind == "notes":
            work = ctx.notes.delete(key=name) if value is None else ctx.notes.put(key=name, value=value)
        else:
            path = str(self.work / name)
            work = ctx.files.delete(path=path) if value is None else ctx.files.write(path=path, content=value)
        self.do(work)
        self.shadow.change(key, value, turn)

    def _compare(self, allowed: dict[str, set[str | None]]) -> None:
        now = self._now()
        for key, values in allowed.items():
            assert now.get(key) in values, (key, now.get(key), values)
            self.shadow.settle(key, now.get(key))

    def _now(self) -> dict[str, str]:
        notes = {f"notes:{key}": value for key, value in self.house.values.items()}
        return notes | {f"files:{path.name}": path.read_text() for path in self.work.iterdir()}

    def _named(self, conflicts: list[dict[str, Any]]) -> set[str]:
        """The keys that conflicts name."""
        return {one["resource"].replace(f"files:{self.work}/", "files:") for one in conflicts}

    def _word(self) -> str:
        self.words += 1
        return f"w{self.words}"


test_what_is_left_is_what_the_turns_that_are_left_made = Conversing.TestCase
test_what_is_left_is_what_the_turns_that_are_left_made.settings = settings(
    max_examples=40, stateful_step_count=25, phases=[Phase.generate]
)
