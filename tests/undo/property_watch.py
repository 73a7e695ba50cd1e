"""Watches a house in which everybody acts and takes back: what was said against what happened."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

from takeback import Context
from takeback.callers import Caller
from takeback.errors import TakebackError
from tests.undo.house import House, house
from tests.undo.notebook import Notebook, version

T = TypeVar("T")
LONG_AGO = "2000-01-01T00:00:00Z"
BLOCKED = ("undo.conflict", "undo.dependents", "undo.not_undoable")
COMMON = "common"
_NO_WORDS = {COMMON, "absent", ""}


class World(dict[str, str]):
    """The states of all rows by id, and the notes at the same moment."""

    def __init__(self, states: dict[str, str], notes: dict[str, str]) -> None:
        super().__init__(states)
        self.notes = notes


class Watch:
    """A house and what is known of its acts.

    `wrote` and `ate` hold for each act the words that came and went with it, `brought` those that came with
    its last undo or redo. Every word is written once, but for the common one. `quiet` says that no hand and
    no force has been at work, `merged` that something was merged.
    """

    def __init__(self) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="takeback-"))
        self.notebook = Notebook(merges=True)
        self.acts: list[str] = []
        self.undos: list[str] = []
        self.actors: dict[str, str] = {}
        self.wrote: dict[str, set[tuple[str, str]]] = {}
        self.ate: dict[str, set[tuple[str, str]]] = {}
        self.brought: dict[str, set[tuple[str, str]]] = {}
        self.quiet = True
        self.merged = False
        self._runner = asyncio.Runner()
        self.open()

    def do(self, work: Awaitable[T]) -> T:
        """Run the loop until something is done."""

        async def wait() -> T:
            return await work

        return self._runner.run(wait())

    def open(self) -> None:
        """Start the house."""
        self._stack = AsyncExitStack()
        self.house: House = self.do(
            self._stack.enter_async_context(house(self.place, notebook=self.notebook))
        )

    def close(self) -> None:
        """Stop the house; it can be opened again."""
        self.do(self._stack.aclose())

    def end(self) -> None:
        """Stop the house for good."""
        self.close()
        self._runner.close()
        shutil.rmtree(self.place)

    def world(self) -> World:
        """The states of rows, but for those that came to nothing and those behind the scenes."""
        rows = self.do(self.house.rows("SELECT id, state FROM undo_acted WHERE role <> 'counter'"))
        kept = {row["id"]: row["state"] for row in rows if row["state"] != "abandoned"}
        return World(kept, dict(self.notebook.values))

    def act(self, actor: str, work: Awaitable[Any]) -> None:
        """Have something done, and note what it did."""
        self.do(work)
        rows = self.do(self.house.rows("SELECT id, seq FROM undo_acted WHERE role = 'act' ORDER BY seq"))
        for row_id, seq in (row.values() for row in rows[len(self.acts) :]):
            touched = self.do(self.house.rows(f"SELECT * FROM undo_touched WHERE act = {seq}"))
            before, after = (
                _words({row["resource"].removeprefix("notes:"): row[when] for row in touched})
                for when in ("before", "after")
            )
            self.acts.append(row_id)
            self.actors[row_id] = actor
            self.wrote[row_id], self.ate[row_id] = after - before, before - after

    def keys_of(self, act: str) -> list[str]:
        """The resources that an act touched."""
        sql = f"SELECT t.resource FROM undo_touched t JOIN undo_acted a ON a.seq = t.act WHERE a.id = '{act}'"
        return [row["resource"] for row in self.do(self.house.rows(sql))]

    # ------------------------------------------------------------------ taking back

    def take_back(self, ctx: Context, verb: str, **asked: Any) -> None:
        """Preview, run what was previewed, and hold what happened against what was said."""
        before = self.world()
        redo = {"redo": True} if verb == "redo" else {}
        plan, refused = self._try(ctx.undo.preview(**asked, **redo))
        self.require_unchanged(before)
        digest = {} if refused else {"digest": plan.plan.digest}
        failing = bool(self.notebook.failures)
        outcome, error = self._try(getattr(ctx.undo, verb)(**asked, **digest))
        if error is None:
            assert refused is None
            self._require_told(ctx, before, plan.plan, outcome, skips=bool(asked.get("skip_conflicts")))
            self._require_kept(before, outcome, force=bool(asked.get("force")))
            return
        self.require_unchanged(before)
        if refused is not None:
            assert error.code == refused.code
        elif error.code == "undo.failed":
            assert failing, error
        else:
            assert error.code in BLOCKED, error
            _require_named(plan.plan)

    def _try(self, work: Awaitable[Any]) -> tuple[Any, TakebackError | None]:
        try:
            return self.do(work), None
        except TakebackError as error:
            return None, error

    def refusal(self, work: Awaitable[Any]) -> str | None:
        """The code of the error that something ends with, if it does."""
        _, error = self._try(work)
        return None if error is None else error.code

    def require_unchanged(self, before: World, rows: Iterable[str] | None = None) -> None:
        """A refusal changes nothing, and a failure only says that there was one."""
        assert self.notebook.values == before.notes
        after = self.world()
        for row in before if rows is None else rows:
            assert after[row].replace("failed", "done") == before[row].replace("failed", "done"), row

    def _require_told(self, ctx: Context, before: World, plan: Any, outcome: Any, *, skips: bool) -> None:
        """The plan was what happened: states, versions, and nothing beside."""
        after = self.world()
        assert outcome.plan == plan or not outcome.plan.steps
        assert skips or all(map(_runs, outcome.plan.steps))
        changed = {row for row in before if after[row] != before[row]}
        told = {result.id for result in outcome.results if not result.already}
        parts = {result.id for result in outcome.results if result.part}
        superseded = {row for row in changed if row not in self.acts and after[row] == "undone"}
        assert changed - superseded <= told <= changed | parts, (changed, told, parts)
        assert all(after[result.id] == result.state for result in outcome.results)
        self._require_own(ctx, told)
        if outcome.act is not None:
            self.undos.append(outcome.act)
            self.merged = self.merged or any(step.status == "merge" for step in plan.steps)
        self._require_versions(before, plan if outcome.act is not None else outcome.plan)

    def _require_own(self, ctx: Context, told: set[str]) -> None:
        """Nobody but the person gives another's act another state."""
        caller = Caller.parse(ctx.holder)
        if caller.kind != "person":
            mine = {"module"} if caller.kind == "module" else {f"{caller.name} s1", f"{caller.name} s2"}
            assert {self.actors[row] for row in told if row in self.actors} <= mine

    def _require_versions(self, before: World, plan: Any) -> None:
        promised = {e.resource: e.version for s in plan.steps if _runs(s) for e in s.effects if e.version}
        notes = {name.removeprefix("notes:"): found for name, found in promised.items()}
        for key, found in notes.items():
            assert version(self.notebook.values.get(key)) == found, (key, plan)
        for key in {*before.notes, *self.notebook.values} - notes.keys():
            assert self.notebook.values.get(key) == before.notes.get(key), (key, plan)

    def _require_kept(self, before: World, outcome: Any, *, force: bool) -> None:
        """Words may go that the act itself brought, or that its last undo or redo did; all others stay."""
        had, now = _words(before.notes), _words(self.notebook.values)
        changed = [result for result in outcome.results if not result.already]
        if force:
            self.quiet = self.quiet and not changed
        else:
            mine: set[tuple[str, str]] = set()
            for result in changed:
                # Of an act that stands, a part may have gone or come again.
                own = [self.wrote] if result.state == "undone" else [self.ate]
                own += [self.wrote] if result.part else []
                mine |= set().union(*(one[result.id] for one in own), self.brought.get(result.id, set()))
            assert had - mine <= now, (had - mine - now, outcome)
        self.brought |= {result.id: now - had for result in changed}

    # ------------------------------------------------------------------ what is always so

    def require_agreement(self) -> None:
        """Where no hand was and nothing merged, each note is as the act left it that stands since last."""
        if self.merged or not self.quiet:
            return
        sql = (
            "SELECT t.resource, t.after, t.taken_in, a.state"
            " FROM undo_touched t JOIN undo_acted a ON a.seq = t.act"
            " WHERE a.role = 'act' AND a.state <> 'abandoned' ORDER BY t.stands"
        )
        should: dict[str, str] = {}
        for row in self.do(self.house.rows(sql)):
            should.setdefault(row["resource"], "absent")
            if row["state"] != "undone" and row["taken_in"] is None:
                should[row["resource"]] = row["after"]
        for name, expected in should.items():
            assert version(self.notebook.values.get(name.removeprefix("notes:"))) == expected, name

    def take_all_back(self) -> None:
        """Without hands and force all comes back to the first state; and a redo of it brings all again."""
        before, person = self.world(), self.house.person()
        outcome = self.do(person.undo.rewind(since=LONG_AGO, skip_conflicts=True))
        if self.quiet:
            assert self.notebook.values == {}
        if outcome.act is not None:
            self.do(person.undo.redo(id=outcome.act))
            self.require_unchanged(before, self.acts)


def _words(notes: Mapping[str, str]) -> set[tuple[str, str]]:
    """Which words that are written once stand in which note, from values or from versions of values."""
    words = {(key, word) for key, value in notes.items() for word in value.removeprefix("v:").split(",")}
    return {(key, word) for key, word in words if word not in _NO_WORDS}


def _runs(step: Any) -> bool:
    return step.status in ("clean", "merge") or step.forced


def _require_named(plan: Any) -> None:
    """A plan that is refused says for each step in its way what is the matter, and where."""
    standing = [step for step in plan.steps if not _runs(step)]
    assert standing
    for step in standing:
        assert step.reason, step
        if step.status in ("conflict", "dependents", "gone"):
            assert any(conflict.act == step.act for conflict in plan.conflicts), (step, plan)
