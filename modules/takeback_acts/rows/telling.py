"""Telling: what taking back does, or would do, by resource and in versions."""

from __future__ import annotations

from collections.abc import Sequence

from takeback_acts.rows import looking
from takeback_acts.rows.connections import Connection
from takeback_acts.rows.effects import AGAINST, Effect
from takeback_acts.rows.journal import Taken
from takeback_acts.rows.models import Effect as Told
from takeback_acts.rows.sessions.session import Session


def effects_of(connection: Connection, session: Session, taken: Taken, wanted: Sequence[str]) -> list[Told]:
    """Effects by resource, with the versions that these have afterwards; of several the worst is told."""
    worst: dict[str, Effect] = {}
    for effect in taken.effects:
        for name in _places(connection, session, effect, wanted):
            known = worst.get(name)
            if known is None or (known.action not in AGAINST and effect.action in AGAINST):
                worst[name] = effect
    there = [name for name in worst if not name.endswith("/") or name.count("/") > 2]
    after = looking.versions(connection, session.dialect, session.link, session.catalog, there)
    return [
        Told(
            resource=name,
            action=effect.action,
            reason=_reason(effect),
            version=after.get(name, ""),
            constraint=effect.constraint,
        )
        for name, effect in worst.items()
    ]


def _places(connection: Connection, session: Session, effect: Effect, wanted: Sequence[str]) -> list[str]:
    """The resources that an effect is on, in the terms of what the act touched where it did."""
    table = session.catalog.tables.get(effect.table)
    name = connection.names.named(effect.table, table, effect.key, effect.column)
    if name in wanted:
        return [name]
    row = name.rpartition("/")[0] + "/"
    if row in wanted:
        return [row]
    beneath = [one for one in wanted if one.startswith(row)] if not effect.column else []
    return beneath or [name]


def _reason(effect: Effect) -> str:
    if not effect.constraint or effect.constraint in effect.reason:
        return effect.reason
    return f"{effect.reason or 'it would break a constraint'} [{effect.constraint}]"
