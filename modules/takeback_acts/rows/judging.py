"""Judging: what giving back a change would do to the rows as they would be by then.

An update gives back the columns that it set and no others. An insert is taken away when the whole row is as
it was left. What was deleted comes again under its key when that is free. Everything else is a conflict.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple, TypeAlias

from takeback_acts.rows import merging
from takeback_acts.rows.effects import Effect
from takeback_acts.rows.overlay import Overlay, Sheet
from takeback_acts.rows.shapes import Fit
from takeback_acts.rows.tables import Image, Key, same

Part: TypeAlias = "tuple[str, Key, str]"
_UNKNOWN: Image = ()


class Step(NamedTuple):
    """One change to be judged, in the columns of today.

    `key` is that of the row as the act left it, or of what it deleted, in its one form; `old` what an update
    changed it from, None where it did not. `places` are those of the columns that an update set, and `lost`
    columns that it needs and that are no more.
    """

    fit: Fit
    before: Image | None
    after: Image | None
    key: Key
    places: Sequence[int] = ()
    lost: tuple[str, ...] = ()
    old: Key | None = None


class Judge:
    """Judges entries one after the other, newest first, and notes what each leaves in the overlay.

    `only` are the parts to give back, (table, key, column) with the key in its one form and the column "" for
    a row as a whole; None for all. `force` gives back in spite of what others did.
    """

    def __init__(self, overlay: Overlay, *, only: Container[Part] | None, force: bool) -> None:
        self.effects: list[Effect] = []
        self.partial = False
        self._overlay = overlay
        self._sheets = overlay.sheets
        self._only = only
        self._force = force

    def entry(self, entry: str, steps: list[Step]) -> None:
        """Judges what one entry changed, as a whole: rows may have changed places."""
        moving = [step for step in steps if step.old is not None]
        if moving:
            self._exchange(entry, [step for step in reversed(steps) if step not in moving], moving)
            return
        for step in reversed(steps):
            self._step(entry, step)

    def _step(self, entry: str, step: Step) -> None:
        fit = step.fit
        if fit.why:
            self._unfit(entry, step)
            return
        sheet = self._sheets.get(fit.name) or self._overlay.sheet(fit.name)
        if step.before is None:
            self._uninsert(entry, sheet, step)
        elif step.after is None:
            self._undelete(entry, sheet, step)
        else:
            self._unupdate(entry, sheet, step)

    # -- one row where it is ------------------------------------------------------------------------------

    def _unupdate(self, entry: str, sheet: Sheet, step: Step) -> None:
        _, before, after, key, places, lost, _ = step
        assert before is not None
        assert after is not None
        table = sheet.table
        now = sheet.state.get(key, _UNKNOWN)
        if now is _UNKNOWN:
            now = sheet.base[key]
        if now is None:
            self.effects.append(Effect(entry, table.name, key, "", "gone", "the row is no more"))
        elif self._only is None and not lost and table.equal(now, after):
            sheet.state[key] = before
            name, names, silent = table.name, table.names, sheet.silent
            for place in places:
                if place not in silent:
                    self.effects.append(Effect(entry, name, key, names[place], "restore"))
        else:
            self._merge(entry, sheet, step, now)

    def _merge(self, entry: str, sheet: Sheet, step: Step, now: Image) -> None:
        """Gives back columns one by one, since the row is not as the act left it."""
        _, before, after, key, places, lost, _ = step
        assert before is not None
        assert after is not None
        table = sheet.table
        for name in lost:
            self._conflict(entry, table.name, key, name, "the column is no more, or of another type")
        image = list(now)
        for place, verdict in merging.merge(sheet, places, before, after, now).items():
            name = table.names[place]
            if not self._chosen(table.name, key, name):
                continue
            against = verdict.action == "conflict"
            if not against or self._force:
                image[place] = verdict.value
            if name in sheet.derived:
                continue
            if against and not self._force:
                values = (after[place], before[place], now[place])
                self._conflict(entry, table.name, key, name, verdict.reason, *values)
            else:
                action = "restore" if against else verdict.action
                self.effects.append(Effect(entry, table.name, key, name, action, verdict.reason))
        sheet.state[key] = tuple(image)

    def _uninsert(self, entry: str, sheet: Sheet, step: Step) -> None:
        key, after, name = step.key, step.after, sheet.table.name
        assert after is not None
        if not self._chosen(name, key, ""):
            return
        now = sheet.now(key)
        if now is None:
            self.effects.append(Effect(entry, name, key, "", "skip", "missing"))
        elif self._as_left(entry, sheet, key, after, now, step.lost):
            sheet.state[key] = None
            self.effects.append(Effect(entry, name, key, "", "delete"))

    def _undelete(self, entry: str, sheet: Sheet, step: Step) -> None:
        key, before, name = step.key, step.before, sheet.table.name
        assert before is not None
        if not self._chosen(name, key, ""):
            return
        now = sheet.now(key)
        if now is not None and sheet.alike(now, before):
            self.effects.append(Effect(entry, name, key, "", "skip", "unchanged"))
        elif self._free(entry, sheet, key, before, now) and self._whole(entry, sheet, key, step.lost):
            sheet.state[key] = before
            self.effects.append(Effect(entry, name, key, "", "restore"))

    def _as_left(
        self, entry: str, sheet: Sheet, key: Key, after: Image, now: Image, lost: tuple[str, ...]
    ) -> bool:
        """Whether a row is as the act left it, so that it can go; a conflict else."""
        if self._force or (not lost and sheet.alike(now, after)):
            return True
        differs = _differing(sheet, after, now)
        self._conflict(
            entry,
            sheet.table.name,
            key,
            "",
            f"changed since: {', '.join([*differs, *lost])}",
            {name: pair[0] for name, pair in differs.items()},
            None,
            {name: pair[1] for name, pair in differs.items()},
        )
        return False

    def _free(
        self, entry: str, sheet: Sheet, key: Key, before: Image, now: Image | None, reason: str = ""
    ) -> bool:
        """Whether a row can be put under a key, which nobody has or, by force, somebody else has."""
        if now is None or self._force:
            return True
        differs = _differing(sheet, before, now)
        self._conflict(
            entry,
            sheet.table.name,
            key,
            "",
            reason or f"another row has its key; it differs in {', '.join(differs)}",
            None,
            {name: pair[0] for name, pair in differs.items()},
            {name: pair[1] for name, pair in differs.items()},
        )
        return False

    def _whole(self, entry: str, sheet: Sheet, key: Key, lost: tuple[str, ...]) -> bool:
        if not lost or self._force:
            return True
        why = f"of no place or another type now: {', '.join(lost)}"
        self._conflict(entry, sheet.table.name, key, "", why)
        return False

    # -- rows that change places ---------------------------------------------------------------------------

    def _exchange(self, entry: str, still: list[Step], moving: list[Step]) -> None:
        """Takes every row from where the act left it before any is put where it was: keys may have been
        swapped."""
        found = [self._lifted(entry, self._overlay.sheet(step.fit.name), step) for step in moving]
        for step in still:
            if step.before is None or step.after is not None:
                self._step(entry, step)
        for sheet, old, new, image, origin in filter(None, found):
            occupant = sheet.now(new)
            if not self._free(entry, sheet, new, image, occupant, "another row has the key it had"):
                continue
            if (real := sheet.origin(new)) is not None:
                sheet.ousted.append(real)
            sheet.put(new, image, origin)
            self.effects.append(Effect(entry, sheet.table.name, old, "", "restore", "key"))
            self.effects.append(Effect(entry, sheet.table.name, new, "", "restore", "key"))
        for step in still:
            if step.before is not None and step.after is None:
                self._step(entry, step)

    def _lifted(
        self, entry: str, sheet: Sheet, step: Step
    ) -> tuple[Sheet, Key, Key, Image, Image | None] | None:
        table, here = sheet.table, step.key
        assert step.old is not None
        if not self._chosen(table.name, here, ""):
            return None
        if sheet.now(here) is None:
            self.effects.append(Effect(entry, table.name, here, "", "gone", "the row is no more"))
            return None
        count = len(self.effects)
        self._unupdate(entry, sheet, step)
        if any(effect.action == "conflict" for effect in self.effects[count:]):
            return None
        image = sheet.now(here)
        assert image is not None
        return sheet, here, step.old, image, sheet.lift(here)

    # -- words ---------------------------------------------------------------------------------------------

    def _unfit(self, entry: str, step: Step) -> None:
        fit = step.fit
        if fit.table is None:
            self.effects.append(Effect(entry, fit.name, step.key, "", "gone", fit.why))
        else:
            self._conflict(entry, fit.name, step.key, "", fit.why)

    def _chosen(self, table: str, key: Key, column: str) -> bool:
        if self._only is None or (table, key, column) in self._only:
            return True
        self.partial = True
        return False

    def _conflict(
        self,
        entry: str,
        table: str,
        key: Key,
        column: str,
        reason: str,
        base: object = None,
        ours: object = None,
        theirs: object = None,
    ) -> None:
        self.effects.append(Effect(entry, table, key, column, "conflict", reason, base, ours, theirs))


def _differing(sheet: Sheet, one: Image, other: Image) -> dict[str, tuple[object, object]]:
    names = sheet.table.names
    return {
        names[place]: (one[place], other[place])
        for place in sheet.promised
        if not same(one[place], other[place])
    }
