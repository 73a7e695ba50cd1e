"""Keeping: which entries the journal still has, for whom, and when they go."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from takeback.errors import UsageError
from takeback_acts.rows.dialect import Link
from takeback_acts.rows.entries import TABLE

_AT_ONCE = 400
_GONE = "expired"


@dataclass(frozen=True, slots=True)
class Standing:
    """The points of a group: by each the number of its first entry; and those whose acts are too old."""

    first: dict[str, int]
    expired: frozenset[str]


def now(ago: timedelta = timedelta()) -> str:
    """The moment, or one before it, as the journal writes it: ISO 8601, UTC, milliseconds."""
    moment = datetime.now(UTC) - ago
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def standing(link: Link, mark: str, group: str) -> Standing:
    """What is known of the points of a group."""
    sql = (
        f"SELECT point, min(seq), max(CASE WHEN kind = '{_GONE}' THEN 1 ELSE 0 END) FROM {TABLE}"
        f" WHERE grp = {mark} AND kind IN ('act', '{_GONE}') GROUP BY point"
    )
    rows = link.execute(sql, (group,))
    return Standing({row[0]: row[1] for row in rows}, frozenset(row[0] for row in rows if row[2]))


def forget(link: Link, mark: str, group: str, points: frozenset[str]) -> int:
    """Deletes all of these points; how many acts."""
    names, count = sorted(points), 0
    for start in range(0, len(names), _AT_ONCE):
        part = names[start : start + _AT_ONCE]
        among = f"grp = {mark} AND point IN ({', '.join([mark] * len(part))})"
        for kinds in ("= 'act'", "<> 'act'"):
            link.execute(f"DELETE FROM {TABLE} WHERE {among} AND kind {kinds}", (group, *part))
            count += link.rowcount if kinds == "= 'act'" else 0
    return count


def move(link: Link, mark: str, group: str, to: str) -> int:
    """Gives all of a group to another; how many entries."""
    if group == to:
        return 0
    link.execute(f"UPDATE {TABLE} SET grp = {mark} WHERE grp = {mark}", (to, group))
    return link.rowcount


def expire(link: Link, mark: str, older_than: timedelta) -> int:
    """Deletes entries that are older; how many acts.

    Of each group one line stays, empty, which tells that there was more. Raises UsageError `journal.age`.
    """
    if older_than < timedelta():
        raise UsageError("journal.age", "An age can't be less than nothing.", "Give timedelta(days=30).")
    before = now(older_than)
    old = f"at < {mark}"
    count = int(link.execute(f"SELECT count(*) FROM {TABLE} WHERE {old} AND kind = 'act'", (before,))[0][0])
    last = (
        f"SELECT max(seq) FROM {TABLE} WHERE {old}"
        f" AND (kind = '{_GONE}' OR (kind = 'act' AND undone_in IS NULL)) GROUP BY grp"
    )
    link.execute(
        f"UPDATE {TABLE} SET kind = '{_GONE}', tool = '', shapes = '{{}}', changes = '[]', note = NULL"
        f" WHERE seq IN ({last})",
        (before,),
    )
    link.execute(f"DELETE FROM {TABLE} WHERE {old} AND seq NOT IN ({last})", (before, before))
    return count
