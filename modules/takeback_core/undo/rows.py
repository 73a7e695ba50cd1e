"""Rows of the acted-log: written and read in one place, always inside somebody's transaction."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic_core import from_json, to_json

from takeback_core.undo import resources
from takeback_core.undo.models import Act, Touched

# Acts whose effect stands, as far as anybody knows: what came later than an act and is among these
# may rest on it.
LIVE = ("pending", "done", "undoing", "failed", "unknown", "final")
_LIVE_SQL = ", ".join(f"'{state}'" for state in LIVE)
_MOST_RELATED = 200
# The reason of an act whose message vanished from its conversation.
EDITED = "turn edited"


class Database(Protocol):
    """What both a transaction and a reader's connection can do."""

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> sqlite3.Cursor:
        """Run one statement."""


@dataclass(slots=True)
class Row:
    """One row of `undo_acted` with what it touched.

    `stands` is its seq, or that of what redid it last, and `since` the same for each resource. `taken` names
    the undo of each resource that was taken back by itself, `given` the redo of each that was brought again.
    """

    seq: int
    id: str
    at: str
    actor: str
    via: str
    recorded_by: str
    actor_kind: str
    agent: str | None
    session: str | None
    turn: str | None
    parent: str | None
    path: str
    role: str
    subject: str | None
    tool: str
    input: str
    summary: str
    inverse_tool: str | None
    inverse_input: str | None
    why: str
    state: str
    reason: str | None
    error: str | None
    tries: int
    undone_at: str | None
    undone_by: str | None
    undone_in: str | None
    redone_in: str | None
    run_key: str | None
    lease_owner: str | None
    lease_until: str | None
    pinned: int
    touched: list[Touched] = field(default_factory=list)
    has_children: bool = False
    stands: float = 0
    since: dict[str, int] = field(default_factory=dict)
    taken: dict[str, str] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)

    @property
    def undoable(self) -> bool:
        """Whether there is something to take back, as far as the row itself tells."""
        reversible = self.inverse_tool is not None or self.role == "undo"
        return reversible and self.state in ("done", "failed")

    @property
    def rests_in(self) -> str | None:
        """The undo or redo that gave the row the state it has."""
        return self.undone_in if self.state == "undone" else self.redone_in

    def rests_on(self, run: str) -> bool:
        """Whether the row, or a part of what it touched, has the state it has from an undo or redo."""
        return self.rests_in == run or run in self.taken.values() or run in self.given.values()

    def stands_since(self, resource: str) -> float:
        """The place from which on the act stands on a resource."""
        return self.since.get(resource, self.stands)

    def same_session(self, other: Row) -> bool:
        """Whether two acts belong to one session of one actor; an act without a session stands alone."""
        if self.agent is None or other.agent is None:
            return self.actor == other.actor and self.session == other.session
        return self.agent == other.agent and self.session == other.session

    def act(self) -> Act:
        """The row as surfaces see it."""
        return Act(
            id=self.id,
            at=self.at,
            actor=self.actor,
            via=self.via,
            actor_kind=self.actor_kind,  # type: ignore[arg-type]
            agent=self.agent,
            session=self.session,
            turn=self.turn,
            parent=self.parent,
            role=self.role,  # type: ignore[arg-type]
            tool=self.tool,
            input={} if self.role == "undo" else from_json(self.input),
            summary=self.summary,
            state=self.state,  # type: ignore[arg-type]
            undoable=self.undoable,
            reason=self.reason,
            error=None if self.error is None else from_json(self.error),
            tries=self.tries,
            why=from_json(self.why),
            touched=self.touched,
            taken_back=self.taken,
            undone_at=self.undone_at,
            undone_by=self.undone_by,
            undone_in=self.undone_in,
            pinned=bool(self.pinned),
        )


_BESIDE = ("touched", "has_children", "stands", "since", "taken", "given")
_COLUMNS = tuple(name for name in Row.__slots__ if name not in _BESIDE)
_SELECT = ", ".join(f"a.{name}" for name in _COLUMNS)
_SELECT += ", EXISTS (SELECT 1 FROM undo_acted c WHERE c.parent = a.id) AS has_children"
_INSERTED = tuple(name for name in _COLUMNS if name != "seq")
_INSERT = f"INSERT INTO undo_acted ({', '.join(_INSERTED)}) VALUES ({', '.join('?' * len(_INSERTED))})"


_numbers = random.Random()  # noqa: S311


def new_id() -> str:
    """A UUIDv7 (RFC 9562): its time is for people, nothing is ordered by it."""
    ms = time.time_ns() // 1_000_000
    # Nobody is kept out by an id, so it need not be secret, and asking the system each time costs a third
    # of recording an act.
    rand = _numbers.getrandbits(80)
    value = (
        (ms & (1 << 48) - 1) << 80
        | 0x7 << 76
        | (rand >> 68 & 0xFFF) << 64
        | 0b10 << 62
        | rand & (1 << 62) - 1
    )
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def dumps(value: Any) -> str:
    """JSON text of plain values."""
    return to_json(value).decode()


def insert(db: Database, row: dict[str, Any], touched: Iterable[Touched], blobs: Iterable[str] = ()) -> int:
    """Add a row with what it touched and the blobs it names; answers its seq."""
    seq = db.execute(_INSERT, [row.get(name) for name in _INSERTED]).lastrowid
    assert seq is not None
    _insert_touched(db, seq, touched)
    _insert_blobs(db, seq, blobs)
    return seq


def replace_touched(db: Database, seq: int, touched: Iterable[Touched], *, foreseen: bool = True) -> None:
    """Write what an act touched anew, from what really happened; `foreseen` if any of it was written."""
    if foreseen:
        db.execute("DELETE FROM undo_touched WHERE act = ?", (seq,))
    _insert_touched(db, seq, touched)


def stand_again(db: Database, row: Row, since: int, *, but: Collection[str] = ()) -> None:
    """Note that an act stands since another row was written, which redid it, `but` on some resources."""
    for item in row.touched:
        if item.resource not in row.taken and item.resource not in but:
            db.execute(
                "UPDATE undo_touched SET stands = ? WHERE act = ? AND resource = ?",
                (since, row.seq, item.resource),
            )


def replace_blobs(db: Database, seq: int, blobs: Iterable[str]) -> None:
    """Write anew which blobs an act names."""
    db.execute("DELETE FROM undo_blob WHERE act = ?", (seq,))
    _insert_blobs(db, seq, blobs)


def _insert_touched(db: Database, seq: int, touched: Iterable[Touched]) -> None:
    for item in touched:
        db.execute(
            "INSERT INTO undo_touched (act, resource, before, after, stands) VALUES (?, ?, ?, ?, ?)",
            (seq, item.resource, item.before, item.after, seq),
        )


def _insert_blobs(db: Database, seq: int, blobs: Iterable[str]) -> None:
    for digest in blobs:
        db.execute("INSERT OR IGNORE INTO undo_blob (act, digest) VALUES (?, ?)", (seq, digest))


def update(db: Database, row_id: str, **columns: Any) -> None:
    """Set columns of one row."""
    names = ", ".join(f"{name} = ?" for name in columns)
    db.execute(f"UPDATE undo_acted SET {names} WHERE id = ?", [*columns.values(), row_id])


def stands(db: Database, row_id: str, state: str) -> bool:
    """Give a pending row another state; whether it was pending."""
    sql = "UPDATE undo_acted SET state = ? WHERE id = ? AND state = 'pending'"
    return db.execute(sql, (state, row_id)).rowcount == 1


def confirm(db: Database, row_id: str, state: str, summary: str | None) -> int | None:
    """Give a pending row another state, and other words where there are some; its seq if it was pending."""
    sql = (
        "UPDATE undo_acted SET state = ?, summary = coalesce(?, summary)"
        " WHERE id = ? AND state = 'pending' RETURNING seq"
    )
    found = db.execute(sql, (state, summary, row_id)).fetchall()
    return int(found[0][0]) if found else None


def correct(db: Database, row_id: str, touched: Iterable[Touched] | None, summary: str | None = None) -> None:
    """Write what an act really touched, and its words, over what was foreseen."""
    if summary is not None:
        update(db, row_id, summary=summary)
    if touched is not None:
        ((seq,),) = map(tuple, db.execute("SELECT seq FROM undo_acted WHERE id = ?", (row_id,)))
        replace_touched(db, seq, touched)


def one(db: Database, row_id: str) -> Row | None:
    """A row by id."""
    found = many(db, "a.id = ?", [row_id])
    return found[0] if found else None


def children(db: Database, row_id: str) -> list[Row]:
    """The rows recorded inside another's call, or the counters of an undo, newest first."""
    return many(db, "a.parent = ?", [row_id])


def many(db: Database, where: str, parameters: Sequence[Any], limit: int = -1) -> list[Row]:
    """Rows that match, newest first."""
    sql = f"SELECT {_SELECT} FROM undo_acted a WHERE {where} ORDER BY a.seq DESC LIMIT ?"
    return _with_touched(db, [Row(*found) for found in _plain(db.execute(sql, [*parameters, limit]))])


def _plain(cursor: sqlite3.Cursor) -> list[tuple[Any, ...]]:
    return [(*found[:-1], [], bool(found[-1])) for found in map(tuple, cursor)]


def _with_touched(db: Database, found: list[Row]) -> list[Row]:
    sql = (
        "SELECT resource, before, after, stands, taken_in, given_in"
        " FROM undo_touched WHERE act = ? ORDER BY resource"
    )
    for row in found:
        touched = [tuple(found) for found in db.execute(sql, (row.seq,))]
        row.touched = [Touched.model_construct(resource=r, before=b, after=a) for r, b, a, *_ in touched]
        row.since = {name: since for name, _, _, since, *_ in touched}
        # What came between its parts is to be undone before all of it.
        live = [since for *_, since, run, _ in touched if run is None]
        row.stands = min(live or row.since.values(), default=row.seq)
        row.taken = {name: run for name, *_, run, _ in touched if run is not None}
        row.given = {name: run for name, *_, run in touched if run is not None}
    return found


def parent_of(db: Database, path: Sequence[str]) -> Row | None:
    """The act recorded by the nearest call around a recording, if there is one."""
    for length in range(len(path) - 1, 0, -1):
        if found := many(db, "a.path = ?", ["/".join(path[:length])], 1):
            return found[0]
    return None


def adopt(db: Database, row_id: str, path: str) -> None:
    """Make the acts that were recorded in calls within `path`, before this one, its children."""
    db.execute(
        "UPDATE undo_acted SET parent = ?"
        " WHERE path > ? AND path < ? AND parent IS NULL AND role = 'act' AND id <> ?",
        (row_id, path + "/", path + "0", row_id),
    )


def later(
    db: Database,
    resource: str,
    since: tuple[float, int],
    seen: Collection[int],
    *,
    new: bool = False,
) -> list[Row]:
    """Live acts that stand since later, but those seen, on a resource, beneath it or on a folder around it.

    `since` is a place and the seq of the act that has it: where a redo had nothing to run for an act, that
    has the place of the one redone before it. What was taken back of an act by itself counts no more, and
    what vanished turns did counts as anybody's edit. With `new` none that was only redone since. The newest
    ones, where there are very many.
    """
    low, high = resources.beneath(resource)
    after = (*since, since[0] if new else 0)
    base = (
        "SELECT t.act FROM undo_touched t JOIN undo_acted a ON a.seq = t.act"
        " WHERE {} AND (t.stands, t.act) > (?, ?) AND t.act > ? AND t.taken_in IS NULL"
        f" AND a.role = 'act' AND a.state IN ({_LIVE_SQL}) AND a.reason IS NOT '{EDITED}'"
        f" ORDER BY t.stands DESC LIMIT {len(seen) + _MOST_RELATED}"
    )
    found: set[int] = set()
    for name in [resource, *resources.trees_around(resource)]:
        found |= {act for (act,) in map(tuple, db.execute(base.format("t.resource = ?"), (name, *after)))}
    ranged = db.execute(base.format("t.resource >= ? AND t.resource < ?"), (low, high, *after))
    found |= {act for (act,) in map(tuple, ranged)}
    fresh = [row for act in found - set(seen) for row in many(db, "a.seq = ?", [act])]
    return sorted(fresh, key=lambda row: -row.stands)


def error_text(error: dict[str, Any]) -> str:
    """An error's shape as the log keeps it, without what only the caller may see."""
    return json.dumps({key: error[key] for key in ("code", "message", "hint") if key in error})
