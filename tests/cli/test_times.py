"""Times as people write and read them."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from takeback import UsageError, moments
from takeback_doors.cli import ids, times

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("90s", timedelta(seconds=90)),
        ("30m", timedelta(minutes=30)),
        ("2h", timedelta(hours=2)),
        ("2 h ago", timedelta(hours=2)),
        ("7d", timedelta(days=7)),
        ("1w", timedelta(weeks=1)),
    ],
)
def test_a_while_ago(text: str, back: timedelta):
    stamp = times.parse_since(text)
    assert STAMP.fullmatch(stamp)
    assert abs(datetime.now(UTC) - back - datetime.fromisoformat(stamp)) < timedelta(seconds=5)


@pytest.mark.parametrize(
    ("text", "stamp"),
    [
        ("2026-03-01T12:30:00Z", "2026-03-01T12:30:00.000Z"),
        ("2026-03-01T12:30:00.1234+02:00", "2026-03-01T10:30:00.123Z"),
        ("2026-03-01 12:30Z", "2026-03-01T12:30:00.000Z"),
    ],
)
def test_a_point_in_time(text: str, stamp: str):
    assert times.parse_since(text) == stamp


def test_a_time_without_a_zone_is_local():
    local = datetime(2026, 3, 1, 12, 30).astimezone(UTC)
    assert times.parse_since("2026-03-01T12:30") == moments.stamp(local)


@pytest.mark.parametrize(
    "text", ["", "soon", "1y", "-1h", "1h30m", "2026-13-01", "9999999d", "999999w", "0001-01-01"]
)
def test_what_is_no_time_is_a_usage_error(text: str):
    with pytest.raises(UsageError, match="point in time"):
        times.parse_since(text)


@pytest.mark.parametrize(
    ("back", "shown"),
    [
        (timedelta(seconds=1), "now"),
        (timedelta(seconds=42), "42 s ago"),
        (timedelta(minutes=59, seconds=50), "59 min ago"),
        (timedelta(hours=23, minutes=59), "23 h ago"),
        (-timedelta(seconds=2), "now"),
    ],
)
def test_a_recent_time_is_how_long_ago(back: timedelta, shown: str):
    assert times.short(moments.stamp(NOW - back), NOW) == shown


@pytest.mark.parametrize("back", [timedelta(days=2), timedelta(days=900), -timedelta(days=2)])
def test_any_time_is_short(back: timedelta):
    assert len(times.short(moments.stamp(NOW - back), NOW)) <= 12


def test_a_full_time_is_said_once_and_how_long_ago():
    local = datetime(2026, 3, 1, 11, tzinfo=UTC).astimezone()
    assert times.full("2026-03-01T11:00:00.000Z", NOW) == f"{local:%Y-%m-%d %H:%M:%S %Z} (1 h ago)"
    assert times.full("2025-03-01T11:00:00.000Z", NOW).startswith("2025-03-01")
    assert "(" not in times.full("2025-03-01T11:00:00.000Z", NOW)
    assert times.full("whenever") == "whenever"


def test_only_what_has_come_is_past():
    assert times.is_past("2026-03-01T11:00:00.000Z")
    assert not times.is_past("2999-03-01T11:00:00.000Z")
    assert not times.is_past(None)


def test_ids_are_shortened_as_far_as_they_differ():
    one, two, three = (
        "01900000-0001-7000-8000-000000000001",
        "01900000-0001-7000-8000-000000000002",
        "01900000-0002-7000-8000-000000000001",
    )
    assert ids.shortened([one, two, three]) == {one: one, two: two, three: "01900000-0002"}
    assert ids.shortened([one]) == {one: "01900000-0001"}
