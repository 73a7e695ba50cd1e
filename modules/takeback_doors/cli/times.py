"""Points in time: as a person writes them, and as a person reads them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from takeback import moments
from takeback.errors import UsageError

_AGO = re.compile(r"(\d{1,6})\s*(s|m|h|d|w)")
# Farther away a day needs its year, and less its hour.
_NEAR = timedelta(days=300)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_since(text: str) -> str:
    """ISO 8601 in UTC with milliseconds, from that, a local time or date, or `90s`, `30m`, `2h`, `7d`, `1w`.

    Raises UsageError `usage.time`.
    """
    try:
        return moments.stamp(_meant(text.strip()))
    except (ValueError, OverflowError):
        raise UsageError(
            "usage.time",
            f"{text!r:.60} is no point in time",
            "Write 2h, 30m or 7d for a while ago, or a date such as 2026-03-01 or 2026-03-01T14:30.",
        ) from None


def parse_days(text: str) -> float:
    """Days, from `12h`, `7d`, `2w`; raises UsageError `usage.time`."""
    if (span := _AGO.fullmatch(text.strip())) and int(span[1]):
        return timedelta(**{_UNITS[span[2]]: int(span[1])}) / timedelta(days=1)
    raise UsageError("usage.time", f"{text!r:.60} is no length of time", "Write for example 12h, 7d or 2w.")


def _meant(text: str) -> datetime:
    if ago := _AGO.fullmatch(text.removesuffix("ago").strip()):
        return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    return datetime.fromisoformat(text)


def short(text: str, now: datetime | None = None) -> str:
    """A stored time in at most 12 characters: how long ago within a day, else the local day and time."""
    at = _parsed(text)
    if at is None:
        return text[:12]
    local, past = at.astimezone(), _past(at, now)
    day = f"{local:%d %b %H:%M}" if timedelta() < past < _NEAR else f"{local:%Y-%m-%d}"
    return _ago(at, now) or day


def clock(text: str) -> str:
    """A stored time as the local hour, minute and second."""
    at = _parsed(text)
    return f"{at.astimezone():%H:%M:%S}" if at else text


def full(text: str, now: datetime | None = None) -> str:
    """A stored time in full: local with its zone, and how long ago where that is within a day."""
    at = _parsed(text)
    if at is None:
        return text
    past = _ago(at, now)
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S %Z}" + (f" ({past})" if past else "")


def is_past(text: str | None) -> bool:
    """Whether a stored time has come; none never does."""
    at = _parsed(text) if text else None
    return at is not None and _past(at, None) >= timedelta()


def _past(at: datetime, now: datetime | None) -> timedelta:
    return (now or datetime.now(UTC)) - at


def _ago(at: datetime, now: datetime | None) -> str:
    """How long ago, within a day; else nothing."""
    past = _past(at, now).total_seconds()
    if -5 < past < 60:
        return "now" if past < 5 else f"{int(past)} s ago"
    if 0 < past < 3600:
        return f"{int(past / 60)} min ago"
    return f"{int(past / 3600)} h ago" if 0 < past < 24 * 3600 else ""


def _parsed(text: str) -> datetime | None:
    try:
        return moments.parse(text)
    except ValueError:
        return None
