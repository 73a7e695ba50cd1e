"""Applying: net changes of rows as statements, in an order that the constraints allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from takeback_acts.rows import ordering, parking
from takeback_acts.rows.changes import Change
from takeback_acts.rows.dialect import Dialect, Link
from takeback_acts.rows.patience import Patience
from takeback_acts.rows.tables import Catalog, ForeignKey, Image, Key, Table, Value, same

Set = tuple[Key, dict[str, Value]]
_QUIET = ("NO ACTION", "")


class Applier:
    """Makes changes of rows happen. `singly` runs a statement a row, so that `at` names the row that
    failed. `patient`: rows that are in each other's way wait for each other."""

    def __init__(
        self,
        link: Link,
        dialect: Dialect,
        catalog: Catalog,
        *,
        singly: bool = False,
        patient: bool = False,
    ) -> None:
        self.at: tuple[str, Key] | None = None
        self._link = link
        self._dialect = dialect
        self._catalog = catalog
        self._singly = singly
        self._patient = patient

    def apply(self, changes: Iterable[Change]) -> None:
        """Rows that leave a parent which goes; rows that go, children first; rows that stay; rows that come,
        parents first; rows that turn to a parent which came. Raises the driver's errors."""
        deletes: dict[str, list[Image]] = {}
        inserts: dict[str, list[Image]] = {}
        updates: dict[str, list[Change]] = {}
        for change in changes:
            if change.before is None:
                assert change.after is not None
                inserts.setdefault(change.table, []).append(change.after)
            elif change.after is None:
                deletes.setdefault(change.table, []).append(change.before)
            else:
                updates.setdefault(change.table, []).append(change)
        order = ordering.tables(self._catalog, [*deletes, *inserts, *updates])
        early = self._apart(updates, deletes, side=1, when=_acts)
        late = self._apart(updates, inserts, side=2, when=_waits_not)
        self._update(early, order, deletes, inserts)
        parked = self._parked(updates, order, deletes, inserts)
        self._delete(deletes, order)
        self._set(parked)
        for name in order:
            if name in inserts:
                table = self._catalog.tables[name]
                rows = ordering.images(table, inserts[name])
                self._run(self._dialect.insert, table, rows, table.key_of)
        self._update(late, order, deletes, inserts)

    def _apart(
        self,
        updates: dict[str, list[Change]],
        others: dict[str, list[Image]],
        *,
        side: int,
        when: Callable[[ForeignKey], bool],
    ) -> dict[str, list[Change]]:
        """Takes from the updates the rows whose foreign key names, on one side, a row among others."""
        found: dict[str, list[Change]] = {}
        for name, changes in updates.items() if others else ():
            table = self._catalog.tables[name]
            for key in table.foreign_keys:
                if key.to not in others or not when(key):
                    continue
                to = self._catalog.tables[key.to]
                there = [to.index(column) for column in key.to_columns]
                here = [table.index(column) for column in key.columns]
                named = {tuple(image[place] for place in there) for image in others[key.to]}
                for change in list(changes):
                    image: Image = change[side]  # type: ignore[assignment]
                    if tuple(image[place] for place in here) in named and _differ(change, here):
                        found.setdefault(name, []).append(change)
                        changes.remove(change)
        return found

    def _parked(
        self,
        updates: dict[str, list[Change]],
        order: Sequence[str],
        deletes: dict[str, list[Image]],
        inserts: dict[str, list[Image]],
    ) -> list[tuple[Table, list[Set], list[Set]]]:
        """For each table what goes out of the way, and what is set then. A row that can't go out of the way
        is deleted and inserted again."""
        made = []
        for name in order:
            changes = updates.get(name)
            if not changes:
                continue
            table = self._catalog.tables[name]
            sets = [_set(table, change) for change in changes]
            moved: list[Set] = []
            if not self._patient and len(sets) > 1 and parking.columns(table).intersection(*[_columns(sets)]):
                away = {id(each.change): each for each in parking.parked(self._dialect, table, changes)}
                sets = []
                for change in changes:
                    each = away.get(id(change))
                    if each is not None and each.stuck:
                        assert change.before is not None
                        assert change.after is not None
                        deletes.setdefault(name, []).append(change.before)
                        inserts.setdefault(name, []).append(change.after)
                    else:
                        sets.append(_set(table, change, each, moved))
            made.append((table, moved, sets))
        return made

    def _update(
        self,
        updates: dict[str, list[Change]],
        order: Sequence[str],
        deletes: dict[str, list[Image]],
        inserts: dict[str, list[Image]],
    ) -> None:
        self._set(self._parked(updates, order, deletes, inserts))

    def _set(self, parked: Iterable[tuple[Table, list[Set], list[Set]]]) -> None:
        for table, moved, sets in parked:
            if self._patient:
                self._wait(table, sets)
                continue
            self._run(self._dialect.update, table, moved, itemgetter(0))
            self._run(self._dialect.update, table, sets, itemgetter(0))

    def _wait(self, table: Table, sets: list[Set]) -> None:
        patience = Patience(self._link, self._dialect, table)
        try:
            patience.set(sets)
        finally:
            self.at = (table.name, patience.at)
        self.at = None

    def _delete(self, deletes: dict[str, list[Image]], order: Sequence[str]) -> None:
        for name in reversed(order):
            if name in deletes:
                table = self._catalog.tables[name]
                keys = [table.key_of(row) for row in ordering.images(table, deletes[name])[::-1]]
                self._run(self._dialect.delete, table, keys, tuple)

    def _run(
        self,
        do: Callable[[Link, Table, list[Any]], None],
        table: Table,
        items: list[Any],
        key_of: Callable[[Any], Key],
    ) -> None:
        if not items:
            return
        if not self._singly:
            self.at = None
            do(self._link, table, items)
            return
        for item in items:
            self.at = (table.name, key_of(item))
            do(self._link, table, [item])
        self.at = None


def _set(
    table: Table, change: Change, away: parking.Parked | None = None, moved: list[Set] | None = None
) -> Set:
    before, after = change.before, change.after
    assert before is not None
    assert after is not None
    key, columns = table.key_of(before), table.columns
    values = {
        columns[place].name: after[place]
        for place in table.differing(before, after)
        if not columns[place].generated
    }
    if away is None or moved is None:
        return key, values
    moved.append((key, away.values))
    for name in away.values:
        values.setdefault(name, after[table.index(name)])
    return tuple(map(away.values.get, table.key, key)), values


def _columns(sets: Iterable[Set]) -> set[str]:
    return {name for _, values in sets for name in values}


def _differ(change: Change, places: Iterable[int]) -> bool:
    before, after = change.before, change.after
    assert before is not None
    assert after is not None
    return any(not same(before[place], after[place]) for place in places)


def _acts(key: ForeignKey) -> bool:
    """Whether something happens at once to rows whose parent goes."""
    return key.on_delete not in _QUIET or not key.deferrable


def _waits_not(key: ForeignKey) -> bool:
    return not key.deferrable
