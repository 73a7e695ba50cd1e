"""Telling: what taking back does, or would do, by resource, in versions and in values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from takeback_acts.rows import looking, values
from takeback_acts.rows.connections import Connection
from takeback_acts.rows.effects import AGAINST, Effect
from takeback_acts.rows.journal import Taken
from takeback_acts.rows.models import Effect as Told
from takeback_acts.rows.sessions.session import Session
from takeback_acts.rows.tables import Image, Table


def effects_of(connection: Connection, session: Session, taken: Taken, wanted: Sequence[str]) -> list[Told]:
    """Effects by resource, with the versions that these have afterwards; of several the worst is told.

    Their values are for who may see every column.
    """
    worst: dict[str, Effect] = {}
    for effect in taken.effects:
        for name in _places(connection, session, effect, wanted):
            known = worst.get(name)
            if known is None or (known.action not in AGAINST and effect.action in AGAINST):
                worst[name] = effect
    there = [name for name in worst if not name.endswith("/") or name.count("/") > 2]
    after = looking.versions(connection, session.dialect, session.link, session.catalog, there)
    changed = _changed(connection, session, taken)
    return [
        Told(
            resource=name,
            action=effect.action,
            reason=_reason(effect),
            version=after.get(name, ""),
            constraint=effect.constraint,
            **(_against(session, effect) if effect.action in AGAINST else _at(changed, name)),
        )
        for name, effect in worst.items()
    ]


def _changed(connection: Connection, session: Session, taken: Taken) -> dict[str, dict[str, Any]]:
    """The rows that are changed, by their resources: what is there now, and what will be then."""
    found: dict[str, dict[str, Any]] = {}
    for change in taken.changes:
        table = session.catalog.tables.get(change.table)
        for image in {change.before, change.after} - {None}:
            if table is not None and image is not None:
                name = connection.names.row(table, table.key_of(image))
                found[name] = {
                    "now": _row(session, table, change.before),
                    "then": _row(session, table, change.after),
                }
    return found


def _row(session: Session, table: Table, image: Image | None) -> dict[str, Any] | None:
    return None if image is None else values.row(session.dialect.name, table.columns, image)


def _at(changed: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """The values of a row as a whole, or of the one column that a resource is."""
    row, _, column = name.rpartition("/")
    found = changed.get(f"{row}/", {})
    if not column:
        return found
    return {kind: image and image.get(unquote(column)) for kind, image in found.items()}


def _against(session: Session, effect: Effect) -> dict[str, Any]:
    """What is there, what it would become again, and what the act had left."""
    table = session.catalog.tables.get(effect.table)
    if table is None:
        return {}
    told = {"now": effect.theirs, "then": effect.ours, "base": effect.base}
    return {kind: _value(session, table, effect.column, value) for kind, value in told.items()}


def _value(session: Session, table: Table, column: str, value: Any) -> Any:
    engine = session.dialect.name
    if isinstance(value, dict):
        return {
            name: values.decode(engine, one, table.columns[table.index(name)]) for name, one in value.items()
        }
    if not column or value is None or not table.has(column):
        return None
    return values.decode(engine, value, table.columns[table.index(column)])


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
