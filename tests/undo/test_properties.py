"""Any sequence of acts, undos and redos: nothing of anybody else's is lost, and every word is true."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from takeback import Context
from tests.undo.property_watch import COMMON, LONG_AGO, Watch

keys = st.sampled_from(["a", "d", "d/e"])
actors = st.sampled_from(["juno s1", "juno s2", "vega s1", "vega s2", "person", "module"])
takers = st.sampled_from(["person", "person", "person", "actor", "actor", "actor", "juno s1"])
turns = st.sampled_from(["t1", "t2"])
values = st.integers(0, 3)
which = st.integers(0, 9)
owns = st.sampled_from(["around", "after", "never", "final"])
parts = st.sampled_from(
    [
        {"session": "s1"},
        {"session": "s2", "turn": "t2"},
        {"session": "s1", "turn": "t1", "agent": "vega"},
        {"agent": "juno"},
        {"since": LONG_AGO},
    ]
)
# Few rules with many ways each: hypothesis leaves whole rules out to look deeper, and acting must not be one.
ways_to_act = st.sampled_from(["put", "put", "put", "delete", "rename", "batch"])
ways_to_undo = st.sampled_from(["run", "run", "redo", "redo", "redo", "already", "dependents", "undo"])


class Undoing(RuleBasedStateMachine):
    """A house in which everybody acts, edits and takes back at will."""

    def __init__(self) -> None:
        super().__init__()
        self.watch = Watch()
        self.words = 0
        self.common = self.calm = False

    @initialize(
        common=st.booleans(),
        calm=st.booleans(),
        puts=st.lists(st.tuples(actors, keys, turns), min_size=2, max_size=5),
    )
    def begin(self, common: bool, calm: bool, puts: list[tuple[str, str, str]]) -> None:
        """With common words, versions come again and again; a calm house knows no hand and no force."""
        self.common, self.calm = common, calm
        for actor, key, turn in puts:
            self.act("put", actor, key, key, 1, turn, "never")

    # ------------------------------------------------------------------ acting

    @rule(how=ways_to_act, actor=actors, key=keys, to=keys, value=values, turn=turns, own=owns)
    def act(self, how: str, actor: str, key: str, to: str, value: int, turn: str, own: str) -> None:
        notes = self._as(actor, turn).notes
        if how == "put":
            self.watch.act(actor, notes.put(key=key, value=self._value(key, value)))
        elif how == "batch":
            items = [{"key": one, "value": self._value(one, 0)} for one in (key, to)]
            batch = notes.batch(items=items, own=own, key=key, value=self._value(key, 0))
            self.watch.act(actor, batch)
        elif how == "delete" and key in self.notes:
            self.watch.act(actor, notes.delete(key=key))
        elif how == "rename" and key in self.notes and to not in self.notes:
            self.watch.act(actor, notes.rename(key=key, to=to))

    @precondition(lambda self: not self.calm)
    @rule(key=keys, value=st.integers(0, 4))
    def edit_by_hand(self, key: str, value: int) -> None:
        if value == 4:
            self.notes.pop(key, None)
        else:
            self.notes[key] = self._value(key, value)
        self.watch.quiet = False

    # ------------------------------------------------------------------ taking back

    @rule(how=ways_to_undo, taker=takers, index=which, force=st.booleans())
    def take_one_back(self, how: str, taker: str, index: int, force: bool) -> None:
        if how == "undo":
            found, verb = self.watch.undos, "redo" if index % 2 else "run"
        elif how == "redo":
            found, verb = self._acts("undone"), "redo"
        elif how == "already":
            found, verb = self._acts("done", "failed", "final"), "redo"
        else:
            found, verb = self._acts("done", "failed"), "run"
        if not found:
            return
        row = found[-1 - index % len(found)]
        asked: dict[str, Any] = {"dependents": True} if how == "dependents" else {}
        if force and not self.calm:
            self.watch.take_back(self._present(), verb, id=row, force=True, **asked)
        else:
            self.watch.take_back(self._taker(taker, row), verb, id=row, **asked)

    @rule(taker=takers, what=parts, skip=st.booleans(), force=st.booleans(), failing=st.integers(0, 35))
    def rewind(self, taker: str, what: dict[str, str], skip: bool, force: bool, failing: int) -> None:
        forced = {"force": True} if force and not self.calm else {}
        if failing < 9:  # after up to two inverses, in one of three ways
            self.watch.notebook.break_next(["before", "inside", "late"][failing % 3], after=failing // 3)
        ctx = self._present() if forced else self._taker(taker, "")
        self.watch.take_back(ctx, "rewind", **what, **forced, skip_conflicts=skip)
        self.watch.notebook.failures = []

    @rule(index=which)
    def undo_without_the_owner(self, index: int) -> None:
        if found := self._acts("done", "failed"):
            row = found[-1 - index % len(found)]
            kernel, before = self.watch.house.kernel, self.watch.world()
            self.watch.do(kernel.set_enabled("notes", False))
            plan = self.watch.do(self._as("person").undo.preview(id=row)).plan
            code = self.watch.refusal(self._as("person").undo.run(id=row, digest=plan.digest))
            self.watch.do(kernel.set_enabled("notes", True))
            # Without its owner only that can be undone which a redo had nothing to do for.
            if any(effect.action != "skip" for step in plan.steps for effect in step.effects) or code:
                assert code in ("undo.inverse_unknown", "undo.owner_off"), plan
                self.watch.require_unchanged(before)
            assert self.notes == before.notes

    @rule()
    def start_again(self) -> None:
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

    def _present(self) -> Context:
        return self.watch.house.person(present=True)

    def _taker(self, taker: str, row: str) -> Context:
        """Who takes an act back: with `actor` the one who did it."""
        return self._as(self.watch.actors.get(row, "juno s1") if taker == "actor" else taker)

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
