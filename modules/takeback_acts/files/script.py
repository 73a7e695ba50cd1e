"""Script: the renames that bring several paths from what they are to what is wanted, all of them or none.

Everything new is staged first. Then names are swapped, one step after another, and what a step displaced is
looked at: when it isn't what was captured, somebody else saved in between, and all steps are taken back.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from takeback import faults
from takeback.errors import TakebackError
from takeback_acts.files import entries, failures, leavings, renames, staging, trees
from takeback_acts.files.abreast import abreast
from takeback_acts.files.beneath import Home, Spot
from takeback_acts.files.clearing import clear, require_clearable
from takeback_acts.files.entries import Entries, Entry
from takeback_acts.files.links import Links, follows
from takeback_acts.files.paths import resource
from takeback_acts.files.reading import Digester
from takeback_acts.files.states import State
from takeback_acts.files.steps import Item, Step, drawn_up
from takeback_acts.files.supply import Supply
from takeback_acts.files.trees import Seen


@dataclass
class Script:
    """Steps with what is staged for them and what they leave behind; `run` blocks.

    `kept` are the visible names that strangers' bytes got which stood in the way. `undone` says, after `run`
    has raised, that nothing of the effect is left.
    """

    items: Sequence[Item]
    staged: list[tuple[Spot, Seen]] = field(init=False)
    steps: list[Step] = field(init=False)
    leftovers: list[tuple[Spot, Seen]] = field(init=False)
    kept: list[Spot] = field(default_factory=list)
    undone: bool = True
    _verified: dict[Spot, Seen] = field(default_factory=dict)
    _owners: dict[Spot, Spot] = field(default_factory=dict)
    _prepared: Spot | None = None
    _handle: int | None = None
    _clean: bool = False

    def __post_init__(self) -> None:
        busy = entries.around(item.spot.path for item in self.items)
        self._entries = Entries(
            Entry(item.spot, item.now.state, item.want.state, item.spot.path in busy)
            for item in self.items
            if item.own
        )
        self.staged, self.steps, self.leftovers = drawn_up([item for item in self.items if not item.own])
        for step in self.steps:
            for temp, owner in ((step.source, step.target), (step.target, step.source)):
                if staging.is_temporary(temp.name):
                    self._owners.setdefault(temp, owner)

    def prepare(self, supply: Supply) -> None:
        """What of the staging a crash leaves no trace of, so that it need not wait for the intent."""
        for temp, want in self.staged if not self._entries.shut else ():
            if want.state.kind == "file" and not want.state.twin and self._handle is None:
                with failures.reported(self._owners[temp].path):
                    self._handle = staging.prepare(temp, want.state, supply)
                    self._prepared = temp

    def close(self) -> None:
        """Lets go of what was prepared."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def run(self, supply: Supply, home: Home) -> None:
        """Does it all, durably. What can't be cleared away afterwards is left to the next start.

        Raises ConflictError `files.changed` and what the system says, with everything as before.
        """
        done: list[Step] = []
        self.undone = False
        try:
            self._entries.open()
            self._stage(supply, home)
            self._require_clearable(home)
            faults.point("files.staged")
            for step in self.steps:
                self._rename(step)
                done.append(step)
                self._verify(step, home)
                faults.point("files.renamed")
            self._entries.dress()
        except BaseException as error:
            self._take_back(done, home)
            if isinstance(error, TakebackError) and (self.kept or not self.undone):
                where = [spot.path for spot in self.kept]
                raise failures.not_as_it_was(error, where, whole=self.undone) from error
            raise
        cleared = abreast(lambda each: self._clear(*each, home), self.leftovers)
        faults.point("files.cleared")
        shut = self._entries.shut_again()
        self._sync()
        self._clean = all(cleared) and shut
        faults.point("files.synced")

    def left(self) -> bool:
        """Whether anything lies at a temporary name of this script's."""
        if self._clean:
            return False
        temps = {spot for spot, _ in [*self.staged, *self.leftovers]}
        names = [temp.beside(temp.name + end) for temp in temps for end in (b"", staging.PART, staging.ASIDE)]
        return any(name.look() is not None for name in names)

    def dump(self) -> dict[str, Any]:
        """What recovery after a crash must know, as JSON values."""
        return {
            "wants": [
                [resource(item.spot.path), item.want.state.dump()] for item in self.items if not item.own
            ],
            "entries": self._entries.dump(),
            "steps": [[resource(s.source.path), resource(s.target.path), s.swap] for s in self.steps],
            "temps": [
                [resource(spot.path), resource(self._owners[spot].path), [seen.state.dump()]]
                for spot, seen in [*self.staged, *self.leftovers]
            ],
        }

    def _stage(self, supply: Supply, home: Home) -> None:
        many = len(self.staged) > staging.FEW
        links = Links(home)
        for together in self._rounds():
            for portion in staging.portions(together):
                supply.bring({want.state.sha256 for _, want in portion if want.state.kind == "file"})
                abreast(lambda each: self._stage_one(*each, supply, home, links, durable=not many), portion)
        if many:
            # One sync for all of them, and the names only then.
            staging.sync_all(temp.folder for temp, _ in self.staged)
            abreast(staging.finish, [temp for temp, _ in self.staged if temp != self._prepared])
        wanted = {temp: want.state for temp, want in self.staged}
        for step in self.steps:
            if step.swap and step.expect is not None:
                self._carry(step, step.expect, wanted[step.source])

    def _rounds(self) -> Iterator[Sequence[tuple[Spot, Seen]]]:
        """What may be staged at once: a file comes before those that are to be links to it."""
        late = [each for each in self.staged if follows(each[1].state, self._owners[each[0]].path)]
        linked = [each for each in self.staged if any(entry.state.twin for entry in each[1].entries)]
        if not late and not linked:
            yield self.staged
            return
        rest = {id(each) for each in (*late, *linked)}
        yield [each for each in self.staged if id(each) not in rest]
        for each in sorted(linked, key=lambda each: self._owners[each[0]].path):
            yield [each]
        yield late

    def _stage_one(
        self, temp: Spot, want: Seen, supply: Supply, home: Home, links: Links, *, durable: bool
    ) -> None:
        with failures.reported(self._owners[temp].path):
            if temp == self._prepared:
                if self._handle is not None and staging.give_name(self._handle, temp):
                    return
                self._prepared = None
            staging.stage(temp, want, supply, home, links, durable=durable)
            if durable:
                staging.finish(temp)

    def _require_clearable(self, home: Home) -> None:
        """What would stay half cleared is not begun."""
        for temp, seen in self.leftovers:
            if seen.state.kind == "dir" and self._owners[temp].look() is not None:
                with failures.reported(self._owners[temp].path):
                    require_clearable(self._owners[temp], home)

    def _carry(self, step: Step, replaced: State, wanted: State) -> None:
        """A file that replaces another keeps what its owner has attached to that."""
        if replaced.kind == wanted.kind == "file":
            staging.carry_attributes(step.target, step.source, access=replaced.mode == wanted.mode)

    def _rename(self, step: Step) -> None:
        """Takes one step; where names can't be swapped, the old one steps aside and the new one comes in."""
        try:
            if not step.swap:
                renames.take_free(step.source, step.target)
            elif not renames.exchange(step.source, step.target):
                aside = step.source.beside(step.source.name + staging.ASIDE)
                renames.take_free(step.target, aside)
                try:
                    renames.take_free(step.source, step.target)
                except OSError:
                    renames.take_free(aside, step.target)
                    raise
                renames.take_free(aside, step.source)
        except (FileExistsError, FileNotFoundError) as error:
            raise failures.changed(self._public(step).path) from error
        except OSError as error:
            raise failures.failure(self._public(step).path, error) from error

    def _verify(self, step: Step, home: Home) -> None:
        if step.check is None or step.expect is None:
            return
        found = self._verified[step.check] = trees.observe(step.check, Digester(), home)
        if not found.state.same(step.expect):
            raise failures.changed(self._public(step).path)

    def _public(self, step: Step) -> Spot:
        return step.source if staging.is_temporary(step.target.name) else step.target

    def _take_back(self, done: list[Step], home: Home) -> None:
        """Steps backwards, as far as nobody stands in the way; what is not ours is kept visibly."""
        back = [self._reverse(step, home) for step in reversed(done)]
        known = {temp: [seen] for temp, seen in self.staged}
        for temp, _ in [*self.staged, *self.leftovers]:
            with contextlib.suppress(OSError, TakebackError):
                kept = leavings.discard(temp, known.get(temp, []), self._owners[temp], home)
                self.kept += [kept] if kept is not None else []
        as_it_was = self._entries.take_back()
        self.undone = all(back) and as_it_was and not self.left()

    def _reverse(self, step: Step, home: Home) -> bool:
        """Takes one step back; answers whether nothing of it can be left but at a temporary name."""
        try:
            if not step.swap:
                self._rename(Step(step.target, step.source))
            elif not self._overwritten(step, home):
                self._rename(Step(step.source, step.target, swap=True))
        except (OSError, TakebackError):
            return staging.is_temporary(step.source.name) or staging.is_temporary(step.target.name)
        return True

    def _overwritten(self, step: Step, home: Home) -> bool:
        """Whether somebody has saved over the file that was swapped in; the latest save is to stay there."""
        staged = dict(self.staged)[step.source].state
        found = step.target.look()
        if staged.kind != "file" or found is None:
            return False
        return not trees.observe(step.target, Digester(), home).state.same(staged)

    def _clear(self, temp: Spot, seen: Seen, home: Home) -> bool:
        """The effect stands by now, so that what can't be cleared away is left to the next start."""
        with contextlib.suppress(OSError, TakebackError):
            if not clear(temp, self._verified.get(temp, seen), home):
                self.kept.append(leavings.keep(temp, self._owners[temp]))
            return True
        return False

    def _sync(self) -> None:
        for folder in {spot.folder for step in self.steps for spot in (step.source, step.target)}:
            os.fsync(folder)
        staging.sync_all(entry.spot.folder for entry in self._entries)
