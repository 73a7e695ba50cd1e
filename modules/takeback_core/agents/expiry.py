"""When a token ends: a number of days, or a moment."""

from __future__ import annotations

import time
from typing import NoReturn

from takeback.errors import UsageError
from takeback.moments import parse

_DAY = 86_400
_MOST_DAYS = 36_500


def moment_of(expires: int | str | None) -> float | None:
    """Seconds since the epoch for days from now or an ISO 8601 moment; raises UsageError `agent.expires`.

    A moment without a zone is taken as UTC.
    """
    if expires is None:
        return None
    if isinstance(expires, str) and not expires.isdecimal():
        moment = _parse(expires)
    else:
        days = int(expires) if len(str(expires)) <= 6 else 0
        if not 1 <= days <= _MOST_DAYS:
            _wrong(f"{expires!r:.40} is not a number of days from 1 to {_MOST_DAYS}")
        moment = time.time() + days * _DAY
    if moment <= time.time():
        _wrong(f"{expires!r:.40} is over already")
    return moment


def _parse(text: str) -> float:
    try:
        return parse(text).timestamp()
    except (ValueError, OverflowError):
        _wrong(f"{text!r:.40} is neither a number of days nor an ISO 8601 moment")


def _wrong(why: str) -> NoReturn:
    raise UsageError("agent.expires", why, "Give days, as in 30, or a moment, as in 2027-01-31T00:00:00Z.")
