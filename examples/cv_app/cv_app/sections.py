"""Sections: rows of a CV from and to JSON, the same for the person's own hand and for the assistant."""

from __future__ import annotations

import base64
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from fastapi import HTTPException
from sqlalchemy import inspect, select
from sqlalchemy.ext.asyncio import AsyncSession

from cv_app.models import SECTIONS

_OURS = {"id", "user_id"}


def model_of(section: str) -> type[Any]:
    """The model of a section; 404 for any other name."""
    model = SECTIONS.get(section)
    if model is None:
        raise HTTPException(404, f"There is no section {section[:40]!r}")
    return model


def values(model: type[Any], given: dict[str, Any]) -> dict[str, Any]:
    """What was given as JSON, as the columns hold it; 422 for a column that isn't there or another type."""
    columns = inspect(model).columns
    unknown = sorted(given.keys() - ({column.key for column in columns} - _OURS))
    if unknown:
        raise HTTPException(422, f"{model.__tablename__} has no {', '.join(unknown)[:200]}")
    try:
        return {name: _decoded(columns[name].type.python_type, value) for name, value in given.items()}
    except (ValueError, ArithmeticError) as error:
        raise HTTPException(422, f"{model.__tablename__}: a value is of another type") from error


def shown(row: Any) -> dict[str, Any]:
    """A row as JSON."""
    return {column.key: _encoded(getattr(row, column.key)) for column in inspect(type(row)).columns}


async def all_rows(session: AsyncSession, user_id: int) -> dict[str, list[dict[str, Any]]]:
    """A whole CV."""
    found = {}
    for name, model in SECTIONS.items():
        rows = await session.scalars(select(model).where(model.user_id == user_id).order_by(model.id))
        found[name] = [shown(row) for row in rows]
    return found


async def own(session: AsyncSession, model: type[Any], user_id: int, ids: list[int]) -> list[Any]:
    """Rows of a user by their ids; 404 when one is not there, or somebody else's."""
    rows = await session.scalars(select(model).where(model.user_id == user_id, model.id.in_(ids)))
    by_id = {row.id: row for row in rows}
    missing = [id for id in ids if id not in by_id]
    if missing:
        raise HTTPException(404, f"{model.__tablename__} has no row {missing[0]}")
    return [by_id[id] for id in ids]


def _decoded(kind: type[Any], value: Any) -> Any:
    if value is None:
        return None
    if kind is bytes:
        return base64.b64decode(value, validate=True)
    if kind in (date, datetime):
        return kind.fromisoformat(value)
    return Decimal(value) if kind is Decimal else value


def _encoded(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value
