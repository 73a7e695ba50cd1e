"""Moments: one way to write a time, one to read it."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from takeback.moments import parse, stamp

NOON = datetime(2026, 1, 31, 12, 0, 0, 7_900, UTC)


@pytest.mark.parametrize(
    "moment",
    [NOON, NOON.astimezone(timezone(timedelta(hours=5, minutes=30))), NOON.astimezone().replace(tzinfo=None)],
)
def test_a_time_is_written_in_utc_with_milliseconds(moment: datetime) -> None:
    assert stamp(moment) == "2026-01-31T12:00:00.007Z"


def test_seconds_since_the_epoch_are_a_time_and_zero_is_one_too() -> None:
    assert stamp(NOON.timestamp()) == "2026-01-31T12:00:00.007Z"
    assert stamp(0.0) == "1970-01-01T00:00:00.000Z"


def test_without_a_time_it_is_now() -> None:
    assert abs(datetime.now(UTC) - parse(stamp())) < timedelta(seconds=5)


def test_what_was_written_is_read_again_and_no_zone_is_utc() -> None:
    assert parse("2026-01-31T12:00:00.007Z") == NOON.replace(microsecond=7_000)
    assert parse("2026-01-31T12:00") == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert parse("2026-01-31T14:00+02:00") == datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "12"])
def test_what_is_no_time_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)
