"""Carrying out: a plan for rows is applied, looked at, put right once where triggers meddled, and looked at
again.

Nothing of it stays when anything is not as planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from takeback_acts.rows import verifying
from takeback_acts.rows.applying import Applier
from takeback_acts.rows.changes import Change, Event, net
from takeback_acts.rows.dialect import Dialect, Link, Violation
from takeback_acts.rows.effects import Effect
from takeback_acts.rows.overlay import Overlay
from takeback_acts.rows.rules import Rules
from takeback_acts.rows.tables import Catalog, Key
from takeback_acts.rows.verifying import Stray

_KEPT = "a trigger keeps it"
# The class of SQLSTATE for values that are none.
_NO_VALUE = "22"


@dataclass
class Carried:
    """What really changed, and `effects`: conflicts that were found by doing it, or columns that triggers
    keep."""

    changes: list[Change] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)


class Carrier:
    """Carries out plans over one link, in the caller's transaction; `patient` as an Applier is."""

    def __init__(
        self, link: Link, dialect: Dialect, catalog: Catalog, rules: Rules, *, patient: bool = False
    ) -> None:
        self._link = link
        self._dialect = dialect
        self._catalog = catalog
        self._rules = rules
        self._patient = patient
        self._strange: set[str] = set()

    def carry(self, overlay: Overlay, planned: Sequence[Change], id: str) -> Carried:
        """Does it; the caller takes it back when the effects have a conflict among them.

        A constraint that breaks leaves a savepoint of the caller's as the only way on.
        """
        applier = Applier(self._link, self._dialect, self._catalog, patient=self._patient)
        self._dialect.arm(self._link, self._catalog, id)
        self._dialect.defer(self._link)
        applier.apply(planned)
        if self._as_planned(overlay, planned):
            left = self._dialect.settle(self._link, self._catalog, planned)
            return Carried(list(planned), [constraint(left, None)] if left else [])
        events = self._collected()
        actual = net(events, self._catalog)
        strays = verifying.strays(overlay, planned, actual)
        if strays:
            applier.apply([stray.change for stray in strays])
            events += self._collected()
            actual = net(events, self._catalog)
            strays = verifying.strays(overlay, planned, actual)
        effects = [effect for stray in strays for effect in self._told(overlay, stray, planned)]
        why = "it would change, and can't be journaled"
        effects += [Effect("", name, (), "", "conflict", why) for name in sorted(self._strange)]
        left = self._dialect.settle(self._link, self._catalog, actual)
        if left is not None:
            effects.append(constraint(left, None))
        for name, key in verifying.misread(self._link, self._dialect, self._catalog, actual):
            effects.append(Effect("", name, key, "", "conflict", "the database holds something else"))
        return Carried(actual, effects)

    def _as_planned(self, overlay: Overlay, planned: Sequence[Change]) -> bool:
        """Whether each row, read back, is as planned, and no more changes were captured than those. Each of
        the rows was another before, so then nothing else has changed. False also where it takes more to
        tell."""
        count = self._dialect.captured(self._link, self._catalog)
        return (
            count == len(planned)
            and all(overlay.sheet(name).plain for name in {change.table for change in planned})
            and not verifying.misread(self._link, self._dialect, self._catalog, planned)
        )

    def _collected(self) -> list[Event]:
        events = self._dialect.collect(self._link, self._catalog)
        outside = self._rules.outside
        if outside or any(event.before is None and event.after is None for event in events):
            events = [event for event in events if event.table not in outside]
            self._strange |= {event.table for event in events} - self._catalog.tables.keys()
            events = [event for event in events if event.table not in self._strange]
        return events

    def _told(self, overlay: Overlay, stray: Stray, planned: Sequence[Change]) -> list[Effect]:
        table = self._catalog.tables[stray.change.table]
        image = stray.change.before or stray.change.after
        assert image is not None
        key = table.identify(table.key_of(image))
        columns = verifying.kept(overlay, stray)
        if columns:
            return [Effect("", table.name, key, column, "merge", _KEPT) for column in columns]
        named = verifying.cause(self._catalog, stray, planned)
        reason = "it would not be as it was" if stray.planned else "it would change as well"
        return [Effect("", table.name, key, "", "conflict", reason, constraint=named)]

    def culprit(self, planned: Sequence[Change]) -> tuple[str, Key] | None:
        """The row at which a plan breaks a constraint, by doing it once more, row by row."""
        applier = Applier(self._link, self._dialect, self._catalog, singly=True, patient=self._patient)
        self._dialect.defer(self._link)
        try:
            applier.apply(planned)
        except Exception as error:
            if broken(self._dialect, error) is None:
                raise
        return applier.at


def broken(dialect: Dialect, error: Exception) -> Violation | None:
    """The constraint that an error of the driver's tells of. A value that its column does not take any more,
    as one of an enum that has lost it, is such a thing too."""
    found = dialect.violation(error)
    if found is None and str(getattr(error, "sqlstate", None)).startswith(_NO_VALUE):
        return Violation("other")
    return found


def constraint(violation: Violation, at: tuple[str, Key] | None) -> Effect:
    """The conflict that a broken constraint is."""
    words = {
        "unique": "a value is taken",
        "foreign_key": "a row that is referred to would be missing",
        "check": "a check does not allow it",
        "not_null": "a column may not be null",
        "exclusion": "another row excludes it",
        "other": "the database refuses it",
    }
    table, key = at or (violation.table, ())
    column = violation.columns[0] if len(violation.columns) == 1 else ""
    return Effect("", table, key, column, "conflict", words[violation.kind], constraint=violation.constraint)
