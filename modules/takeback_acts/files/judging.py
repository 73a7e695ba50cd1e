"""Judging: what putting one path back would mean, now that others may have written since."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from takeback.errors import NotFoundError, TakebackError
from takeback_acts.files import beneath, dressing, gitfiles, trees
from takeback_acts.files.beneath import Spot
from takeback_acts.files.capture.gitpushed import Pushed
from takeback_acts.files.merge import is_text, merge
from takeback_acts.files.models import Back, Effect
from takeback_acts.files.paths import content, own, resource
from takeback_acts.files.reading import digest, read_all
from takeback_acts.files.settings import FilesSettings
from takeback_acts.files.states import State
from takeback_acts.files.supply import Supply
from takeback_acts.files.trees import NOTHING, Seen

_GONE = {"files.blob_missing": "missing-blob", "files.blob_corrupt": "damaged-blob"}
Action = Literal["restore", "delete", "merge", "skip", "conflict", "gone"]


@dataclass(slots=True)
class Case:
    """A path to put back: what lies there, what the act left, and what would lie there afterwards.

    `source` is the case of the path that this one is moved back from, `goes_to` the other way round.
    `homeless` says that not even the folder of the path is there; `apart` names what it goes together with,
    when that is left out.
    """

    spot: Spot
    back: Back
    now: Seen
    want: Seen = NOTHING
    action: Action = "restore"
    reason: str = ""
    source: Case | None = None
    goes_to: Case | None = None
    homeless: bool = False
    apart: str = ""

    @property
    def blocked(self) -> bool:
        """Whether this can't be done."""
        return self.action in ("conflict", "gone")

    def effects(self) -> list[Effect]:
        """The effect on the entry, and for a folder on what it holds."""
        before = self.now.state if self.action in ("skip", "conflict", "gone") else self.want.state
        path = self.spot.path
        if self.back.own:
            return [
                Effect(resource=own(path), action=self.action, reason=self.reason, version=before.own_version)
            ]
        found = [(resource(path), before.version)]
        if "dir" in (self.now.state.kind, self.want.state.kind, self.back.before.kind, self.back.after.kind):
            found.append((content(path), before.content_version))
        return [
            Effect(resource=name, action=self.action, reason=self.reason, version=to, holds=self._holds(name))
            for name, to in found
        ]

    def _holds(self, name: str) -> int | None:
        """How many entries come or go with a folder's content."""
        moved = {"restore": self.want, "delete": self.now}.get(self.action)
        return len(moved.entries) if moved is not None and name.endswith("/") else None


@dataclass
class Judge:
    """Decides a case's action; blocks, since it may read files and blobs."""

    supply: Supply
    settings: FilesSettings
    force: bool
    made: dict[str, bytes] = field(default_factory=dict)
    pushed: Pushed = field(default_factory=lambda: Pushed(()))

    def look_ahead(self, cases: Iterable[Case]) -> None:
        """Fetches together what the cases will need one after another."""
        befores = [case.back.before for case in cases if not case.back.own]
        # What is damaged is found again, and told, by the case that needs it.
        with contextlib.suppress(TakebackError):
            self.supply.bring({state.sha256 for state in befores if state.kind == "file"})

    def decide(self, case: Case) -> None:
        """Sets the case's action, reason and what is wanted."""
        try:
            if case.back.own:
                dressing.decide(case, force=self.force)
            else:
                self._decide(case)
        except TakebackError as error:
            if error.code not in _GONE:
                raise
            case.action, case.reason = "gone", _GONE[error.code]

    def _decide(self, case: Case) -> None:
        before, after, now = case.back.before, case.back.after, case.now.state
        case.action = "delete" if before.kind == "absent" else "restore"
        if now.same(before) and _partner_is_back(case):
            case.action, case.reason, case.want = "skip", "unchanged", case.now
        elif case.apart:
            case.action, case.reason = "conflict", f"it goes together with {case.apart}, which stays as it is"
        elif case.homeless:
            case.action, case.reason = "conflict", "its folder is gone"
        elif self.pushed.holds(case.spot.path):
            self._keep_or_force(case, "what it points to was pushed, so others may have it")
        elif now.same(after) or self._is_same_index(case):
            case.want = self._wanted(case)
        elif not self._moved(case) and not self._merged(case):
            self._refuse_or_force(case)

    def _is_same_index(self, case: Case) -> bool:
        """Whether somebody has only looked at a git work tree since."""
        after, now = case.back.after, case.now.state
        if not gitfiles.is_index(case.spot.path) or (after.kind, now.kind) != ("file", "file"):
            return False
        known, found = self._kept(after), self._current(case.spot, now)
        return known is not None and found is not None and gitfiles.same_index(known, found)

    def _wanted(self, case: Case) -> Seen:
        """What the act found there, with its list when it was a folder; raises `files.blob_missing`."""
        state = case.back.before
        if case.source is not None:
            return case.source.now
        if state.kind == "file":
            self.supply.require([state.sha256])
        if state.kind != "dir" or not state.manifest:
            return Seen(state)
        entries = trees.load(self.supply.read(state.manifest))
        self.supply.require({entry.state.sha256 for entry in entries if entry.state.kind == "file"})
        return Seen(state, entries)

    def _moved(self, case: Case) -> bool:
        """A path that was moved here and changed since takes its changes along when it is moved back."""
        if case.goes_to is None or case.now.state.kind != case.back.after.kind:
            return False
        case.want = self._wanted(case)
        case.action, case.reason = "merge", "moved back with what was changed in it since"
        return True

    def _merged(self, case: Case) -> bool:
        before, after, now = case.back.before, case.back.after, case.now.state
        if (
            {before.kind, after.kind, now.kind} != {"file"}
            or case.source is not None
            or case.goes_to is not None
        ):
            return False
        if max(before.size, after.size, now.size) > self.settings.merge_most:
            return False
        data = self._three_way(case, before, after, now)
        if data is None:
            return False
        mode = before.mode if now.mode == after.mode else now.mode
        sha256 = digest(data)
        self.made[sha256] = data
        case.want = Seen(
            now.model_copy(update={"sha256": sha256, "size": len(data), "mode": mode, "mtime_ns": 0}),
        )
        case.action, case.reason = "merge", "changed since; only this act's lines are taken back"
        if case.want.state.same(now):
            case.action, case.reason = "skip", "unchanged"
        return True

    def _three_way(self, case: Case, before: State, after: State, now: State) -> bytes | None:
        ours = self._current(case.spot, now)
        if ours is None or not is_text(ours, self.settings.merge_most):
            return None
        if now.sha256 == after.sha256:
            return self.supply.read(before.sha256)
        base = self._kept(after)
        if base is None:
            return None
        return merge(
            base,
            ours,
            self.supply.read(before.sha256),
            most_bytes=self.settings.merge_most,
            most_lines=self.settings.merge_most_lines,
        )

    def _kept(self, state: State) -> bytes | None:
        """What the act left, when it was text and kept for a merge."""
        if state.kind != "file":
            return None
        try:
            return self.supply.read(state.sha256)
        except NotFoundError:
            return None

    def _current(self, spot: Spot, now: State) -> bytes | None:
        """The bytes that the case was judged on; None when the disk has others by now."""
        made = self.made.get(now.sha256)
        if made is not None:
            return made
        kept = self._kept(now)
        if kept is not None or spot.folder < 0:
            return kept
        try:
            handle = beneath.open_file(spot.folder, spot.name, spot.path)
        except TakebackError:
            return None  # a rehearsal moved it here, so the disk has it elsewhere
        try:
            data = read_all(handle, now.size)
        finally:
            os.close(handle)
        return data if digest(data) == now.sha256 else None

    def _refuse_or_force(self, case: Case) -> None:
        before, after, now = case.back.before, case.back.after, case.now.state
        if case.goes_to is not None and now.kind == "absent":
            case.action, case.reason = "gone", "what was moved here is no longer here"
            return
        self._keep_or_force(case, _why(before, after, now))

    def _keep_or_force(self, case: Case, reason: str) -> None:
        if self.force:
            case.want = self._wanted(case)
            case.reason = f"overwritten though {reason}"
        else:
            case.action, case.reason = "conflict", reason


def _partner_is_back(case: Case) -> bool:
    """Whether the other path of a move is as before too; a path that was not moved has none."""
    partner = case.source or case.goes_to
    return partner is None or partner.now.state.same(partner.back.before)


def _why(before: State, after: State, now: State) -> str:
    if now.kind == "absent":
        return "it was deleted since"
    if after.kind == "absent":
        return "something else was put there since"
    if after.kind == "dir" and now.kind == "dir":
        return "the folder holds something that the act did not leave there"
    if before.kind == "absent":
        return "it was changed since, so deleting it would lose that change"
    if before.kind == after.kind == now.kind == "file":
        return "it was changed since, and the changes can't be told apart line by line"
    return "it was changed since"
