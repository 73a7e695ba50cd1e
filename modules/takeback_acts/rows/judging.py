"""Judging: what giving back a change would do to the rows as they would be by then.

An update gives back the columns that it set and no others. An insert is taken away when the whole row is as
it was left. What was deleted comes again under its key when that is free. Everything else is a conflict.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TypeAlias

from takeback_acts.rows import merging
from takeback_acts.rows.changes import identical, same
from takeback_acts.rows.effects import Effect
from takeback_acts.rows.overlay import Overlay, Sheet
from takeback_acts.rows.shapes import Fit
from takeback_acts.rows.tables import Image, Key

Part: TypeAlias = "tuple[str, Key, str]"
Step: TypeAlias = "tuple[Fit, Image | None, Image | None, tuple[str, ...]]"
"""How the table fits, the row before and after in the columns of today, and the columns it needs that are no
more."""


class Judge:
    """Judges entries one after the other, newest first, and notes what each leaves in the overlay.

    `only` are the parts to give back, (table, key, column) with the key in its one form and the column "" for
    a row as a whole; None for all. `force` gives back in spite of what others did.
    """

    def __init__(self, overlay: Overlay, *, only: Container[Part] | None, force: bool) -> None:
        self.effects: list[Effect] = []
        self.partial = False
        self._overlay = overlay
        self._only = only
        self._force = force

    def entry(self, entry: str, steps: list[Step]) -> None:
        """Judges what one entry changed, as a whole: rows may have changed places."""
        moving = [step for step in steps if self._moves(step)]
        if moving:
            self._exchange(entry, [step for step in reversed(steps) if step not in moving], moving)
            return
        for step in reversed(steps):
            self._step(entry, step)

    def _moves(self, step: Step) -> bool:
        fit, before, after, _ = step
        if before is None or after is None or fit.table is None or fit.why:
            return False
        table = fit.table
        old, new = table.key_of(before), table.key_of(after)
        return old != new and table.identify(old) != table.identify(new)

    def _step(self, entry: str, step: Step) -> None:
        fit, before, after, lost = step
        if fit.why:
            self._unfit(entry, fit, before, after)
            return
        sheet = self._overlay.sheet(fit.name)
        if before is None:
            assert after is not None
            self._uninsert(entry, sheet, after, lost)
        elif after is None:
            self._undelete(entry, sheet, before, lost)
        else:
            self._unupdate(entry, sheet, before, after, lost)

    # -- one row where it is ------------------------------------------------------------------------------

    def _unupdate(self, entry: str, sheet: Sheet, before: Image, after: Image, lost: tuple[str, ...]) -> None:
        table = sheet.table
        key = table.identify(table.key_of(after))
        now = sheet.now(key)
        if now is None:
            self.effects.append(Effect(entry, table.name, key, "", "gone", "the row is no more"))
            return
        names = table.names
        if self._only is None and not lost and identical(now, after):
            sheet.state[key] = before
            self.effects += [
                Effect(entry, table.name, key, names[place], "restore")
                for place in sheet.promised
                if before[place] is not after[place] and not same(before[place], after[place])
            ]
            return
        for name in lost:
            self._conflict(entry, table.name, key, name, "the column is no more, or of another type")
        merged = merging.merge(sheet, before, after, now)
        image = list(now)
        for place, verdict in merged.items():
            name = names[place]
            if not self._chosen(table.name, key, name):
                continue
            if verdict.action != "conflict" or self._force:
                image[place] = verdict.value
            if name in sheet.derived:
                continue
            if verdict.action == "conflict" and not self._force:
                self._conflict(
                    entry, table.name, key, name, verdict.reason, after[place], before[place], now[place]
                )
            else:
                action = "restore" if verdict.action == "conflict" else verdict.action
                self.effects.append(Effect(entry, table.name, key, name, action, verdict.reason))
        sheet.state[key] = tuple(image)

    def _uninsert(self, entry: str, sheet: Sheet, after: Image, lost: tuple[str, ...]) -> None:
        table = sheet.table
        key = table.identify(table.key_of(after))
        if not self._chosen(table.name, key, ""):
            return
        now = sheet.now(key)
        if now is None:
            self.effects.append(Effect(entry, table.name, key, "", "skip", "missing"))
        elif self._as_left(entry, sheet, key, after, now, lost):
            sheet.state[key] = None
            self.effects.append(Effect(entry, table.name, key, "", "delete"))

    def _undelete(self, entry: str, sheet: Sheet, before: Image, lost: tuple[str, ...]) -> None:
        table = sheet.table
        key = table.identify(table.key_of(before))
        if not self._chosen(table.name, key, ""):
            return
        now = sheet.now(key)
        if now is not None and sheet.alike(now, before):
            self.effects.append(Effect(entry, table.name, key, "", "skip", "unchanged"))
        elif self._free(entry, sheet, key, before, now) and self._whole(entry, sheet, key, lost):
            sheet.state[key] = before
            self.effects.append(Effect(entry, table.name, key, "", "restore"))

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
        lifted: list[tuple[Sheet, Key, Key, Image, Image | None]] = []
        for fit, before, after, lost in moving:
            assert before is not None
            assert after is not None
            found = self._lifted(entry, self._overlay.sheet(fit.name), before, after, lost)
            if found is not None:
                lifted.append(found)
        for step in still:
            if step[1] is None or step[2] is not None:
                self._step(entry, step)
        for sheet, old, new, image, origin in lifted:
            occupant = sheet.now(new)
            if not self._free(entry, sheet, new, image, occupant, "another row has the key it had"):
                continue
            if occupant is not None and (real := sheet.origin(new)) is not None:
                sheet.ousted.append(real)
            sheet.put(new, image, origin)
            self.effects.append(Effect(entry, sheet.table.name, old, "", "restore", "key"))
            self.effects.append(Effect(entry, sheet.table.name, new, "", "restore", "key"))
        for step in still:
            if step[1] is not None and step[2] is None:
                self._step(entry, step)

    def _lifted(
        self, entry: str, sheet: Sheet, before: Image, after: Image, lost: tuple[str, ...]
    ) -> tuple[Sheet, Key, Key, Image, Image | None] | None:
        table = sheet.table
        here, there = table.identify(table.key_of(after)), table.identify(table.key_of(before))
        if not self._chosen(table.name, here, ""):
            return None
        now = sheet.now(here)
        if now is None:
            self.effects.append(Effect(entry, table.name, here, "", "gone", "the row is no more"))
            return None
        count = len(self.effects)
        self._unupdate(entry, sheet, before, after, lost)
        if any(effect.action == "conflict" for effect in self.effects[count:]):
            return None
        image = sheet.now(here)
        assert image is not None
        return sheet, here, there, image, sheet.lift(here)

    # -- words ---------------------------------------------------------------------------------------------

    def _unfit(self, entry: str, fit: Fit, before: Image | None, after: Image | None) -> None:
        place = fit.old_key(before if after is None else after)
        if fit.table is None:
            self.effects.append(Effect(entry, fit.name, place, "", "gone", fit.why))
        else:
            self._conflict(entry, fit.name, place, "", fit.why)

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
