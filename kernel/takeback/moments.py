"""Moments: how a time is written wherever takeback keeps or shows one, and how a caller's is read."""

from __future__ import annotations

from datetime import UTC, datetime


def stamp(moment: datetime | float | None = None) -> str:
    """ISO 8601 in UTC with milliseconds, `2026-01-31T12:00:00.000Z`; now without an argument.

    A number is seconds since the epoch, a datetime without a zone is local.
    """
    if moment is None:
        moment = datetime.now(UTC)
    elif not isinstance(moment, datetime):
        moment = datetime.fromtimestamp(moment, UTC)
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse(text: str) -> datetime:
    """The moment that ISO 8601 text means, in UTC where it names no zone; raises ValueError."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
