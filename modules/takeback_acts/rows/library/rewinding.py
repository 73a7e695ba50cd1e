"""Rewinding: the acts of a conversation from a point on, taken back newest first over one connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from takeback.errors import ConflictError, NotFoundError
from takeback_acts.rows import ids
from takeback_acts.rows.dialect import Link
from takeback_acts.rows.effects import AGAINST, Effect
from takeback_acts.rows.entries import Stored
from takeback_acts.rows.journal import Taken
from takeback_acts.rows.library import keeping, plans, points
from takeback_acts.rows.library.failures import JournalConflict, missing
from takeback_acts.rows.library.ledger import AppLedger
from takeback_acts.rows.library.plans import Plan, Rewound
from takeback_acts.rows.library.points import Name
from takeback_acts.rows.library.reading import Reader
from takeback_acts.rows.library.skips import Skips

_SAVEPOINT = "takeback_rewind"


@dataclass(frozen=True, slots=True)
class Wish:
    """What an app asks for: of a group, from a point on; or, by `undo`, an undo to be taken back."""

    group: Name | None
    point: Name | None = None
    points: Sequence[Name] | None = None
    undo: str | None = None
    digest: str | None = None
    skip: bool = False
    force: bool = False

    def require_named(self) -> None:
        """Raises UsageError `journal.name` unless its group and points, or its undo, are names."""
        if self.undo is None or self.group is not None:
            points.told(self.group, "group")
        if self.undo is None:
            points.told(self.point, "point")


class Rewinder:
    """Carries out one wish over a link. The caller keeps what was done, or takes it back."""

    def __init__(self, link: Link, ledger: AppLedger, names: dict[str, tuple[str, str]], wish: Wish) -> None:
        self._link = link
        self._ledger = ledger
        self._names = names
        self._wish = wish
        self._expired = False

    def preview(self) -> Plan:
        """What it would come to."""
        link, dialect = self._link, self._ledger.dialect
        stored = self._chosen()
        dialect.savepoint(link, _SAVEPOINT)
        try:
            with dialect.borrowed(link):
                return self._planned(stored)[0]
        finally:
            dialect.rollback_to(link, _SAVEPOINT)

    def rewind(self) -> Rewound:
        """Does it, and leaves a savepoint for `keep` or `leave`.

        Raises JournalConflict, ConflictError `journal.changed`; then nothing was done.
        """
        link, dialect = self._link, self._ledger.dialect
        group = self._wish.group
        if group is not None:
            dialect.alone(link, points.told(group, "group"))
        dialect.savepoint(link, _SAVEPOINT)
        try:
            stored = self._chosen()
            with dialect.borrowed(link):
                return self._taken_back(stored)
        except BaseException:
            self.leave()
            raise

    def keep(self) -> None:
        """What was done stays, as far as the app commits it."""
        self._ledger.dialect.release(self._link, _SAVEPOINT)

    def leave(self) -> None:
        """Everything is as before."""
        self._ledger.dialect.rollback_to(self._link, _SAVEPOINT)

    # -- what it is about ----------------------------------------------------------------------------------

    def _chosen(self) -> list[Stored]:
        if not self._ledger.dialect.is_home(self._link):
            raise missing()
        if self._wish.undo is not None:
            return self._undo(self._wish.undo)
        group = points.told(self._wish.group, "group")
        standing = keeping.standing(self._link, self._ledger.dialect.mark, group)
        chosen = points.vanishing(standing.first, self._wish.point, self._wish.points)
        self._expired = bool(chosen & standing.expired)
        since = min((standing.first[name] for name in chosen if name in standing.first), default=None)
        if since is None:
            return []
        live = self._ledger.entries(self._link, grp=group, since_seq=since)
        return [each for each in live if each.point in chosen]

    def _undo(self, id: str) -> list[Stored]:
        found = self._ledger.entries(self._link, ids=[id])
        group = None if self._wish.group is None else points.told(self._wish.group, "group")
        if not found or found[0].kind != "undo" or group not in (None, found[0].grp):
            raise NotFoundError("journal.unknown", "There is no undo of that id.", "`rewind` gives the id.")
        if found[0].undone_in is not None:
            raise ConflictError(
                "journal.redone", "That was done again already.", "There is nothing left to do again."
            )
        return found

    # -- what it comes to ----------------------------------------------------------------------------------

    def _planned(self, stored: list[Stored]) -> tuple[Plan, Skips | None]:
        force = self._wish.force
        taken = self._ledger.preview(self._link, stored, force=force)
        if taken.clean or not self._wish.skip:
            return self._plan(stored, taken, ()), None
        skips, left = Skips(self._ledger.catalog), list[Effect]()
        while not taken.clean:
            against = [effect for effect in taken.effects if effect.action in AGAINST]
            left += against
            if not skips.widen(against):
                return self._plan(stored, taken, ()), skips
            taken = self._ledger.preview(self._link, skips.without(stored), only=skips, force=force)
        return self._plan(stored, taken, left), skips

    def _plan(self, stored: Sequence[Stored], taken: Taken, left: Sequence[Effect]) -> Plan:
        reader = Reader(self._ledger.dialect.name, self._ledger.catalog, self._ledger.rules)
        rows = reader.rows(taken.changes)
        conflicts = reader.conflicts(taken.effects, stored) if not taken.clean else ()
        skipped = reader.conflicts(left, stored)
        acts = tuple(each.id for each in stored)
        return Plan(
            items=plans.items(rows, self._names),
            rows=rows,
            conflicts=conflicts,
            acts=acts,
            digest=plans.digest(acts, rows, (*conflicts, *skipped)),
            expired=self._expired,
            skipped=skipped,
        )

    def _taken_back(self, stored: list[Stored]) -> Rewound:
        if not stored:
            plan = self._plan((), Taken([], [], True), ())
            self._require_same(plan)
            return Rewound("", (), plan)
        if not self._wish.skip:
            plan, id = self._applied(stored, None)
            self._require_same(plan)
            return Rewound(id, plan.acts, plan)
        plan, skips = self._planned(stored)
        self._require_same(plan)
        if plan.conflicts:
            raise JournalConflict(plan)
        done, id = self._applied(stored, skips)
        return Rewound(id, plan.acts, replace(done, skipped=plan.skipped, digest=plan.digest))

    def _applied(self, stored: list[Stored], skips: Skips | None) -> tuple[Plan, str]:
        id = ids.new()
        wanted = stored if skips is None else skips.without(stored)
        taken = self._ledger.take_back(
            self._link, wanted, id=id, at=keeping.now(), only=skips, force=self._wish.force
        )
        plan = self._plan(stored, taken, ())
        if not taken.clean:
            self._require_same(plan)
            raise JournalConflict(plan)
        if taken.partial:
            self._ledger.close(self._link, stored, id)
        return plan, id

    def _require_same(self, plan: Plan) -> None:
        if self._wish.digest is not None and self._wish.digest != plan.digest:
            raise ConflictError(
                "journal.changed",
                "What would be taken back is no longer what was previewed, so nothing was done.",
                "Preview again, and show that.",
            )
