"""Any sequence of acts, undos and redos: nothing of anybody else's is lost, and every word is true."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from takeback import Context
from tests.undo.property_watch import COMMON, LONG_AGO, Watch

keys = st.sampled_from(["a", "b", "d", "d/e"])
actors = st.sampled_from(["juno s1", "juno s2", "vega s1", "vega s2", "person", "module"])
takers = st.sampled_from(["person", "person", "actor", "actor", "juno s1", "vega s2", "module"])
which = st.integers(0, 40)
skips = st.sampled_from([True, True, False])
parts = st.sampled_from(
    [
        {"session": "s1"},
        {"session": "s2", "turn": "t2"},
        {"session": "s1", "turn": "t1", "agent": "vega"},
        {"agent": "juno"},
        {"since": LONG_AGO},
    ]
)


class Undoing(RuleBasedStateMachine):
    """A house in which everybody acts, edits and takes back at will."""

    def __init__(self) -> None:
        super().__init__()
        self.watch = Watch()
        self.words = 0
        self.common = self.calm = False

    @initialize(common=st.booleans(), calm=st.booleans())
    def begin(self, common: bool, calm: bool) -> None:
        """With common words, versions come again and again; a calm house knows no hand and no force."""
        self.common, self.calm = common, calm

    # ------------------------------------------------------------------ acting

    @rule(actor=actors, key=keys, value=st.integers(0, 3), turn=st.sampled_from(["t1", "t2"]))
    def put(self, actor: str, key: str, value: int, turn: str) -> None:
        self._acting(actor, self._as(actor, turn).notes.put(key=key, value=self._value(key, value)))

    @rule(actor=actors, key=keys, value=st.integers(0, 3))
    def put_once_more(self, actor: str, key: str, value: int) -> None:
        """Acting comes first more often than taking back."""
        self._acting(actor, self._as(actor).notes.put(key=key, value=self._value(key, value)))

    @rule(actor=actors, key=keys)
    def delete(self, actor: str, key: str) -> None:
        if key in self.notes:
            self._acting(actor, self._as(actor).notes.delete(key=key))

    @rule(actor=actors, key=keys, to=keys)
    def rename(self, actor: str, key: str, to: str) -> None:
        if key in self.notes and to not in self.notes:
            self._acting(actor, self._as(actor).notes.rename(key=key, to=to))

    @rule(
        actor=actors,
        own=st.sampled_from(["around", "after", "never", "final"]),
        first=keys,
        second=keys,
        key=keys,
    )
    def batch(self, actor: str, own: str, first: str, second: str, key: str) -> None:
        items = [{"key": one, "value": self._value(one, 0)} for one in (first, second)]
        ctx = self._as(actor)
        self._acting(actor, ctx.notes.batch(items=items, own=own, key=key, value=self._value(key, 0)))

    @precondition(lambda self: not self.calm)
    @rule(key=keys, value=st.integers(0, 4))
    def edit_by_hand(self, key: str, value: int) -> None:
        if value == 4:
            self.notes.pop(key, None)
        else:
            self.notes[key] = self._value(key, value)
        self.watch.quiet = False

    # ------------------------------------------------------------------ taking back

    @rule(taker=takers, act=which, dependents=st.booleans())
    def undo(self, taker: str, act: int, dependents: bool) -> None:
        if row := self._pick(act, "done", "failed"):
            self.watch.take_back(self._taker(taker, row), "run", id=row, dependents=dependents)

    @precondition(lambda self: not self.calm)
    @rule(act=which)
    def undo_by_force(self, act: int) -> None:
        if row := self._pick(act, "done", "failed"):
            self.watch.take_back(self._present(), "run", id=row, force=True)

    @rule(taker=takers, act=which)
    def redo(self, taker: str, act: int) -> None:
        if row := self._pick(act, "undone"):
            self.watch.take_back(self._taker(taker, row), "redo", id=row)

    @precondition(lambda self: not self.calm)
    @rule(act=which)
    def redo_by_force(self, act: int) -> None:
        if row := self._pick(act, "undone"):
            self.watch.take_back(self._present(), "redo", id=row, force=True)

    @rule(act=which, verb=st.sampled_from(["run", "redo"]))
    def take_back_what_is_so_already(self, act: int, verb: str) -> None:
        if row := self._pick(act, *(["undone"] if verb == "run" else ["done", "failed", "final"])):
            self.watch.take_back(self._as("person"), verb, id=row)

    @precondition(lambda self: self.watch.undos)
    @rule(undo=which, verb=st.sampled_from(["run", "redo"]))
    def undo_an_undo(self, undo: int, verb: str) -> None:
        row = self.watch.undos[-1 - undo % len(self.watch.undos)]
        self.watch.take_back(self._as("person"), verb, id=row)

    @rule(taker=takers, what=parts, skip=skips)
    def rewind(self, taker: str, what: dict[str, str], skip: bool) -> None:
        self.watch.take_back(self._taker(taker, ""), "rewind", **what, skip_conflicts=skip)

    @precondition(lambda self: not self.calm)
    @rule(what=parts, skip=skips)
    def rewind_by_force(self, what: dict[str, str], skip: bool) -> None:
        self.watch.take_back(self._present(), "rewind", **what, skip_conflicts=skip, force=True)

    @rule(how=st.sampled_from(["before", "inside", "late"]), after=st.integers(0, 3), what=parts, skip=skips)
    def rewind_that_fails(self, how: str, after: int, what: dict[str, str], skip: bool) -> None:
        self.watch.notebook.break_next(how, after=after)
        self.watch.take_back(self._as("person"), "rewind", **what, skip_conflicts=skip)
        self.watch.notebook.failures = []

    @rule(act=which)
    def undo_without_the_owner(self, act: int) -> None:
        if row := self._pick(act, "done", "failed"):
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

    def _pick(self, index: int, *states: str) -> str | None:
        """One of the acts in these states, counted from the newest."""
        world = self.watch.world()
        found = [row for row in self.watch.acts if world.get(row) in states]
        return found[-1 - index % len(found)] if found else None

    def _acting(self, actor: str, work: Awaitable[Any]) -> None:
        self.watch.act(actor, work)

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
