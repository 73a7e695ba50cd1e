"""Entries: the rows of the journal's own table, one for each act and for each undo."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from takeback_acts.rows import codec
from takeback_acts.rows.changes import Change
from takeback_acts.rows.dialect import Dialect, Link

TABLE = "takeback_journal"
COLUMNS = (
    "seq",
    "id",
    "at",
    "kind",
    "grp",
    "point",
    "tool",
    "shapes",
    "changes",
    "undoes",
    "undone_in",
    "note",
)
_AT_ONCE = 400
_BARRED = "barred"


@dataclass(frozen=True, slots=True)
class Entry:
    """What a caller says of an act: `id` unique, `at` ISO UTC, `grp` and `point` whose and where in a
    conversation.

    `note` is the caller's own, JSON values.
    """

    id: str
    at: str
    grp: str = ""
    point: str = ""
    tool: str = ""
    note: dict[str, Any] | None = None


class Stored(NamedTuple):
    """One row of the journal. `kind` is "act" or "undo"; `undone_in` the undo that took it back.

    `text` are its changes as `codec` tells them, and `undoes_text` and `note_text` are JSON or None.
    """

    seq: int
    id: str
    at: str
    kind: str
    grp: str
    point: str
    tool: str
    shapes: str
    text: str
    undoes_text: str | None
    undone_in: str | None
    note_text: str | None

    def __repr__(self) -> str:
        return f"Stored({self.seq}, {self.id!r}, {self.kind!r})"

    @property
    def changes(self) -> list[Change]:
        """What it changed, in the columns that the tables had then."""
        return codec.decode(self.text)

    @property
    def undoes(self) -> tuple[str, ...]:
        """The ids of what an undo took back."""
        return tuple(json.loads(self.undoes_text)) if self.undoes_text else ()

    @property
    def note(self) -> dict[str, Any] | None:
        """The caller's own."""
        note: dict[str, Any] | None = json.loads(self.note_text) if self.note_text else None
        return note


class Journal:
    """Reads and writes the journal's table over a link. Everything is part of the caller's transaction."""

    def __init__(self, dialect: Dialect) -> None:
        mark, self._mark = dialect.mark, dialect.mark
        columns = ", ".join(COLUMNS)
        given = COLUMNS[1:]
        self._insert = f"INSERT INTO {TABLE} ({', '.join(given)}) VALUES ({', '.join([mark] * len(given))})"
        self._select = f"SELECT {columns} FROM {TABLE}"
        self._by_id = f"{self._select} WHERE kind <> '{_BARRED}' AND id IN"
        self._bar = f"{self._insert} ON CONFLICT (id) DO NOTHING"
        # The newest stays, so that no number is given twice.
        self._expire = f"DELETE FROM {TABLE} WHERE at < {mark} AND seq < (SELECT max(seq) FROM {TABLE})"

    def add(self, link: Link, entry: Entry, kind: str, shapes: str, text: str, undoes: Sequence[str]) -> None:
        """Writes one entry; a link that can lets it go to the server together with the commit."""
        write = getattr(link, "post", link.execute)
        write(
            self._insert,
            (
                entry.id,
                entry.at,
                kind,
                entry.grp,
                entry.point,
                entry.tool,
                shapes,
                text,
                json.dumps(list(undoes)) if undoes else None,
                None,
                None if entry.note is None else json.dumps(entry.note, ensure_ascii=False),
            ),
        )

    def by_id(self, link: Link, ids: Iterable[str]) -> list[Stored]:
        """The entries of these ids, newest first."""
        wanted = list(dict.fromkeys(ids))
        rows: list[tuple[Any, ...]] = []
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            rows += link.execute(f"{self._by_id} ({', '.join([self._mark] * len(part))})", part)
        rows.sort(reverse=True)
        return list(map(Stored._make, rows))

    def since(
        self, link: Link, *, grp: str | None, since_seq: int | None, live: bool, kinds: Sequence[str]
    ) -> list[Stored]:
        """Entries of a group, from a number on, that are not taken back: newest first."""
        wheres, params = [f"kind IN ({', '.join([self._mark] * len(kinds))})"], list[Any](kinds)
        if grp is not None:
            wheres.append(f"grp = {self._mark}")
            params.append(grp)
        if since_seq is not None:
            wheres.append(f"seq >= {self._mark}")
            params.append(since_seq)
        if live:
            wheres.append("undone_in IS NULL")
        rows = link.execute(f"{self._select} WHERE {' AND '.join(wheres)} ORDER BY seq DESC", params)
        return list(map(Stored._make, rows))

    def mark(self, link: Link, entries: Sequence[Stored], undo: str | None) -> int:
        """Notes that these are taken back in that undo, or by None that they are again; how many it was new
        for."""
        change = f"UPDATE {TABLE} SET undone_in = {self._mark} WHERE undone_in IS "
        change += "NULL" if undo is not None else "NOT NULL"
        count = 0
        for start in range(0, len(entries), _AT_ONCE):
            part = [each.seq for each in entries[start : start + _AT_ONCE]]
            link.execute(f"{change} AND seq IN ({', '.join([self._mark] * len(part))})", (undo, *part))
            count += link.rowcount
        return count

    def bar(self, link: Link, ids: Iterable[str], at: str) -> bool:
        """Sees to it that entries which are not there never will be; false when one has come after all.

        It waits for a transaction that is about to bring one, and one that comes later fails. What bars an
        entry is a row under its id that is none of any act.
        """
        count = 0
        wanted = list(ids)
        for id in wanted:
            link.execute(self._bar, (id, at, _BARRED, "", "", "", "{}", "[]", None, None, None))
            count += link.rowcount
        return count == len(wanted)

    def expire(self, link: Link, before: str) -> int:
        """Deletes entries that are older, but for the newest of all; how many."""
        link.execute(self._expire, (before,))
        return link.rowcount
