"""Open edits: what lay at the paths of an edit before it, durable until it is known what came of it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from takeback.callers import Caller
from takeback_acts.files.paths import beneath, join, parse, resource
from takeback_acts.files.states import ABSENT, State

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from takeback.store import Store, Transaction
    from takeback_acts.files.trees import Seen

TABLE = """
CREATE TABLE files_edit (
    id TEXT NOT NULL PRIMARY KEY,
    at INTEGER NOT NULL,
    about TEXT NOT NULL
) WITHOUT ROWID;
"""
_SAVE = "INSERT OR REPLACE INTO files_edit VALUES (?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Before:
    """A path of an edit: what was `asked` for, where the change will show, and what lay there before."""

    asked: bytes
    path: bytes
    state: State


@dataclass(frozen=True, slots=True)
class OpenEdit:
    """One edit. `at` is in nanoseconds since 1970; `shared` are paths that others were editing as well.

    `given` says that the states before were told by somebody else, and not looked at.
    """

    id: str
    at: int
    origin: str
    session: str | None
    turn: str | None
    tool: str
    befores: tuple[Before, ...]
    shared: frozenset[bytes] = frozenset()
    given: bool = False

    def same_session(self, other: OpenEdit) -> bool:
        """Whether both are one actor's in one conversation."""
        one, two = Caller.parse(self.origin), Caller.parse(other.origin)
        return one.same_actor(two) and self.session == other.session

    def meets(self, path: bytes) -> bool:
        """Whether a path is one of its own, lies in one or around one."""
        return any(beneath(path, one.path) or beneath(one.path, path) for one in self.befores)

    def digests(self) -> set[str]:
        """The blobs that its end will need."""
        states = [before.state for before in self.befores]
        return {name for state in states for name in (state.sha256, state.manifest) if name}


class OpenEdits:
    """The edits that have begun and not ended; those of earlier processes too."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: dict[str, OpenEdit] = {}

    async def load(self) -> None:
        """Recalls what earlier processes left open."""
        rows = await self._store.read(lambda db: db.execute("SELECT * FROM files_edit").fetchall())
        self._open = {row["id"]: _edit(row) for row in rows}

    def __iter__(self) -> Iterator[OpenEdit]:
        return iter(list(self._open.values()))

    def get(self, id: str) -> OpenEdit | None:
        """The open edit of an id."""
        return self._open.get(id)

    def older_than(self, nanoseconds: int) -> list[OpenEdit]:
        """Those that began longer ago."""
        latest = time.time_ns() - nanoseconds
        return [edit for edit in self if edit.at < latest]

    def add(self, edit: OpenEdit) -> OpenEdit:
        """Takes one in, marks what it shares with others; answers it as it is then."""
        for other in self:
            if other.id != edit.id and not edit.same_session(other):
                common = frozenset(one.path for one in edit.befores if other.meets(one.path))
                back = frozenset(one.path for one in other.befores if edit.meets(one.path))
                edit = replace(edit, shared=edit.shared | common)
                self._open[other.id] = replace(other, shared=other.shared | back)
        self._open[edit.id] = edit
        return edit

    def save(self, tx: Transaction, edit: OpenEdit) -> None:
        """Writes one down, and the others that share something with it."""
        rows = [edit, *(one for one in self if one.shared and one.id != edit.id)]
        tx.executemany(_SAVE, [(one.id, one.at, _about(one)) for one in rows])

    def remove(self, edit: OpenEdit) -> None:
        """Takes one out; its row goes in the commit of what is queued next."""
        self._open.pop(edit.id, None)
        self._store.submit(
            lambda tx: tx.execute("DELETE FROM files_edit WHERE id = ?", (edit.id,)), ride=True
        )

    async def put_back(self, edit: OpenEdit) -> None:
        """Opens one again whose act could not be recorded."""
        self._open[edit.id] = edit
        await self._store.transaction(lambda tx: self.save(tx, edit))

    def moved_on(self, by: OpenEdit, path: bytes, before: State, after: Seen) -> None:
        """Tells the others that an edit's act has taken a path on: what they do begins there."""
        for other in self:
            befores = tuple(_moved(one, path, before, after) for one in other.befores)
            if other.id != by.id and befores != other.befores:
                self._open[other.id] = replace(other, befores=befores)

    def save_all(self, tx: Transaction) -> None:
        """Writes down what `moved_on` changed."""
        tx.executemany(_SAVE, [(one.id, one.at, _about(one)) for one in self])


def _moved(one: Before, path: bytes, before: State, after: Seen) -> Before:
    if one.path != path or not one.state.same(before):
        return one
    if after.state.kind != "dir" or one.asked == path:
        return replace(one, state=after.state)
    # The folder is there by now, so what the other one makes shows somewhere within it.
    known = {entry.path: entry.state for entry in after.entries}
    place = path
    for part in one.asked[len(path) + 1 :].split(b"/"):
        place = join(place, part)
        if place[len(path) + 1 :] not in known:
            return replace(one, path=place, state=ABSENT)
    return replace(one, path=one.asked, state=known[one.asked[len(path) + 1 :]])


def _about(edit: OpenEdit) -> str:
    return json.dumps(
        {
            "origin": edit.origin,
            "session": edit.session,
            "turn": edit.turn,
            "tool": edit.tool,
            "given": edit.given,
            "shared": sorted(map(resource, edit.shared)),
            "befores": [[resource(one.asked), resource(one.path), one.state.dump()] for one in edit.befores],
        }
    )


def _edit(row: sqlite3.Row) -> OpenEdit:
    about: Mapping[str, Any] = json.loads(row["about"])
    return OpenEdit(
        id=row["id"],
        at=row["at"],
        origin=about["origin"],
        session=about["session"],
        turn=about["turn"],
        tool=about["tool"],
        given=about["given"],
        shared=frozenset(parse(path)[0] for path in about["shared"]),
        befores=tuple(
            Before(parse(asked)[0], parse(path)[0], State.model_validate(state))
            for asked, path, state in about["befores"]
        ),
    )
