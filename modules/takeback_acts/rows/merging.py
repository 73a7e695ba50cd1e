"""Merging: what an update set against what is there now, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, localcontext
from typing import Literal, NamedTuple

from takeback_acts.rows.overlay import Sheet
from takeback_acts.rows.tables import Image, Value, same

_EXACT = Context(prec=20_000, traps=[Inexact, InvalidOperation])
_MOST = 1 << 63
# Their values are written as numbers that they are not exactly.
_INEXACT = ("real", "double precision")
_TOGETHER = "it belongs together with a column that changed since"


class Verdict(NamedTuple):
    """What becomes of a column: its value then, and in words why."""

    action: Literal["restore", "merge", "skip", "conflict"]
    value: Value
    reason: str = ""


def merge(sheet: Sheet, places: Sequence[int], before: Image, after: Image, now: Image) -> dict[int, Verdict]:
    """For each column that the update set, by place, what giving it back comes to; `value` is what it was
    then."""
    places = [place for place in places if not sheet.table.columns[place].generated]
    apart = any(place not in places and not same(now[place], after[place]) for place in sheet.promised)
    found = {place: _one(sheet, place, before, after, now, apart) for place in places}
    for group in sheet.groups:
        members = [sheet.table.index(name) for name in group if sheet.table.has(name)]
        if any(place in found for place in members):
            _together(found, members, before, after, now)
    return found


def _one(sheet: Sheet, place: int, before: Image, after: Image, now: Image, apart: bool) -> Verdict:
    name = sheet.table.names[place]
    if same(now[place], after[place]):
        return Verdict("merge" if apart else "restore", before[place])
    if name in sheet.deltas and sheet.table.columns[place].type not in _INEXACT:
        # Also where it is as it was before: others made it so, and what the act added is still in it.
        value = _less(now[place], before[place], after[place])
        if value is not None:
            return Verdict("merge", value, "difference")
    if same(now[place], before[place]):
        return Verdict("skip", before[place], "unchanged")
    if name in sheet.derived:
        return Verdict("skip", now[place], "derived")
    return Verdict("conflict", before[place], "changed since")


def _together(found: dict[int, Verdict], members: list[int], before: Image, after: Image, now: Image) -> None:
    """Columns of a group are given back all or none: one that changed since stands against the others."""
    set_here = [place for place in members if place in found]
    untouched = all(same(now[place], after[place]) for place in members)
    done = all(same(now[place], before[place] if place in found else after[place]) for place in members)
    if untouched or done:
        return
    for place in set_here:
        if found[place].action != "conflict":
            found[place] = Verdict("conflict", before[place], _TOGETHER)


def _less(now: Value, before: Value, after: Value) -> Value:
    """The value now less what the act added to it; None when they are no numbers, or it would not be
    exact."""
    if isinstance(now, int) and isinstance(before, int) and isinstance(after, int):
        left = now - (after - before)
        return left if -_MOST <= left < _MOST else None
    if isinstance(now, str) and isinstance(before, str) and isinstance(after, str):
        try:
            with localcontext(_EXACT):
                found = Decimal(now) - (Decimal(after) - Decimal(before))
        except DecimalException:
            return None
        return format(found, "f") if found.is_finite() else None
    return None
