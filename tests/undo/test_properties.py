"""Any sequence of acts, undos and redos: nothing of anybody else's is lost, and every word is true."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from takeback import Context
from tests.undo.property_watch import COMMON, LONG_AGO, Watch

KEYS = ["a", "d", "d/e"]
ACTORS = ["juno s1", "juno s2", "vega s1", "vega s2", "person", "module"]
TAKERS = ["person", "person", "person", "actor", "actor", "juno s1"]
PARTS = [
    {"session": "s1"},
    {"session": "s2", "turn": "t2"},
    {"session": "s1", "turn": "t1", "agent": "vega"},
    {"agent": "juno"},
    {"since": LONG_AGO},
]
seeds = st.integers(0, 2**64 - 1)


class Undoing(RuleBasedStateMachine):
    """A house in which everybody acts, edits and takes back at will.

    What a step does is drawn from seeds: hypothesis, which leaves whole rules out and repeats others in order
    to look deeper, finds far less here than chance does. What was drawn is noted.
    """

    def __init__(self) -> None:
        super().__init__()
        self.watch = Watch()
        self.words = 0
        self.common = self.calm = False

    @initialize(seed=seeds)
    def begin(self, seed: int) -> None:
        """With common words, versions come again and again; a calm house knows no hand and no force."""
        chance = Random(seed)
        self.seed, self.steps = seed, 0
        self.common, self.calm = chance.random() < 0.5, chance.random() < 0.5

    @rule(seed=seeds)
    def step(self, seed: int) -> None:
        self.steps += 1
        chance = Random(f"{self.seed} {self.steps} {seed}")
        ways = [
            self.act,
            self.take_one_back,
            self.rewind,
            self.edit_by_hand,
            self.leave_off,
            self.start_again,
        ]
        chance.choices(ways, [40, 40, 12, 0 if self.calm else 6, 1, 1])[0](chance)

    # ------------------------------------------------------------------ acting

    def act(self, chance: Random) -> None:
        """Somebody does something."""
        how = chance.choice(["put", "put", "put", "fill", "fill", "delete", "rename", "rename", "batch"])
        actor, key, to = chance.choice(ACTORS), chance.choice(KEYS), chance.choice(KEYS)
        notes = self._as(actor, chance.choice(["t1", "t2"])).notes
        note(f"{actor}: {how} {key} {to}")
        if how == "put":
            self.watch.act(actor, notes.put(key=key, value=self._value(key, chance.randrange(4))))
        elif how == "fill":
            keys = list({key: None, to: None, chance.choice(KEYS): None})
            self.watch.act(actor, notes.fill(keys=keys, value=self._value(key, 0)))
        elif how == "batch":
            items = [{"key": one, "value": self._value(one, 0)} for one in (key, to)]
            own = chance.choice(["around", "after", "never", "final"])
            batch = notes.batch(items=items, own=own, key=chance.choice(KEYS), value=self._value(key, 0))
            self.watch.act(actor, batch)
        elif how == "delete" and key in self.notes:
            self.watch.act(actor, notes.delete(key=key))
        elif how == "rename" and key in self.notes and to not in self.notes:
            self.watch.act(actor, notes.rename(key=key, to=to))

    def edit_by_hand(self, chance: Random) -> None:
        """A hand writes past the log."""
        key, kind = chance.choice(KEYS), chance.randrange(5)
        note(f"by hand: {key}")
        if kind == 4:
            self.notes.pop(key, None)
        else:
            self.notes[key] = self._value(key, kind)
        self.watch.quiet = False

    # ------------------------------------------------------------------ taking back

    def take_one_back(self, chance: Random) -> None:
        """Somebody undoes or redoes one act, or an undo."""
        how = chance.choice(["run", "run", "run", "redo", "redo", "redo", "already", "dependents", "undo"])
        verb = "redo" if how in ("redo", "already") else "run"
        found = {"redo": ["undone"], "already": ["done", "failed", "final"]}.get(how, ["done", "failed"])
        rows = self._acts(*found)
        if how == "undo":
            rows, verb = self.watch.undos, chance.choice(["run", "redo"])
        if not rows:
            return
        row = rows[-1 - chance.randrange(min(len(rows), 5))]
        asked: dict[str, Any] = {"id": row}
        if how == "dependents":
            asked["dependents"] = True
        if verb == "run" and how != "undo":
            if chance.random() < 0.5 and (keys := self.watch.keys_of(row)):
                asked["only"] = [chance.choice(keys)]
            asked["skip_conflicts"] = chance.random() < 0.3
        self._take_back(chance, verb, asked)

    def rewind(self, chance: Random) -> None:
        """Somebody rewinds, and perhaps an inverse fails."""
        asked: dict[str, Any] = {**chance.choice(PARTS), "skip_conflicts": chance.random() < 0.6}
        if chance.random() < 0.3:
            how = chance.choice(["before", "inside", "late"])
            self.watch.notebook.break_next(how, after=chance.randrange(4))
        self._take_back(chance, "rewind", asked)
        self.watch.notebook.failures = []

    def _take_back(self, chance: Random, verb: str, asked: dict[str, Any]) -> None:
        taker = chance.choice(TAKERS)
        if force := not self.calm and chance.random() < 0.15:
            taker, asked["force"] = "person", True
        if taker == "actor":
            taker = self.watch.actors.get(asked.get("id", ""), "juno s1")
        note(f"{taker}: {verb} {asked}")
        ctx = self.watch.house.person(present=True) if force else self._as(taker)
        self.watch.take_back(ctx, verb, **asked)

    def leave_off(self, chance: Random) -> None:
        """Somebody undoes an act whose owner is switched off."""
        if found := self._acts("done", "failed"):
            row, kernel, before = chance.choice(found), self.watch.house.kernel, self.watch.world()
            note(f"without the owner: {row}")
            self.watch.do(kernel.set_enabled("notes", False))
            plan = self.watch.do(self._as("person").undo.preview(id=row)).plan
            code = self.watch.refusal(self._as("person").undo.run(id=row, digest=plan.digest))
            self.watch.do(kernel.set_enabled("notes", True))
            assert code in ("undo.inverse_unknown", "undo.owner_off"), plan
            self.watch.require_unchanged(before)

    def start_again(self, chance: Random) -> None:
        """Everything is stopped and started."""
        note("start again")
        before = self.watch.world()
        self.watch.close()
        self.watch.open()
        assert self.watch.world() == before

    # ------------------------------------------------------------------ who and what

    @property
    def notes(self) -> dict[str, str]:
        """The notes as they are."""
        return self.watch.notebook.values

    def _as(self, actor: str, turn: str | None = None) -> Context:
        house = self.watch.house
        if actor in ("person", "module"):
            return house.person() if actor == "person" else house.module()
        name, session = actor.split()
        return house.agent(name, session=session, turn=turn)

    def _acts(self, *states: str) -> list[str]:
        """The acts in these states, oldest first."""
        world = self.watch.world()
        return [row for row in self.watch.acts if world.get(row) in states]

    def _value(self, key: str, kind: int) -> str:
        """New words, a word more than there are, a word less, or the word that everybody uses."""
        now = self.notes.get(key, "")
        self.words += 1
        new = f"w{self.words}"
        if self.common and kind == 3:
            return COMMON
        if kind == 1 and "," in now:
            return ",".join(sorted([*filter(None, now.split(",")), new]))
        if kind == 2 and now.count(",") > 1:
            return ",".join(now.split(",")[1:])
        return f"{new},{new}x"

    # ------------------------------------------------------------------ what is always so

    @invariant()
    def no_row_is_open(self) -> None:
        assert not {"pending", "undoing", "unknown"} & set(self.watch.world().values())

    @invariant()
    def rows_and_notes_agree(self) -> None:
        self.watch.require_agreement()

    def teardown(self) -> None:
        try:
            self.watch.take_all_back()
        finally:
            self.watch.end()


test_everything_can_be_taken_back = Undoing.TestCase
test_everything_can_be_taken_back.settings = settings(max_examples=60, stateful_step_count=30)
