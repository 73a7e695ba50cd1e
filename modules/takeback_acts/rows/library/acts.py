"""Acts: from where an app says that one begins to where it ends, in a savepoint of the app's transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy.engine import Connection
from sqlalchemy.orm import Session

from takeback.errors import UsageError
from takeback_acts.rows import ids
from takeback_acts.rows.changes import Change
from takeback_acts.rows.dialect import Link
from takeback_acts.rows.entries import Entry
from takeback_acts.rows.library import keeping
from takeback_acts.rows.library.covering import Covering
from takeback_acts.rows.library.ledger import AppLedger
from takeback_acts.rows.library.plans import Row
from takeback_acts.rows.library.reading import Reader
from takeback_acts.rows.library.sqlite import AppSqlite
from takeback_acts.rows.library.station import Station


class Savepoint(Protocol):
    """What `begin_nested` gives, of a session or of a connection."""

    @property
    def is_active(self) -> bool: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Label:
    """What an app says of an act: whose, where in a conversation, by which tool; `note` is its own, JSON."""

    group: str
    point: str
    tool: str
    note: dict[str, Any] | None


class Act:
    """One act. `id` is its journal entry's, if it changes anything; `changes` are known when it has ended.

    An act within it is an entry of its own, and parts it in two: `ids` has the ids of the parts.
    """

    def __init__(self, label: Label) -> None:
        self.id = ids.new()
        self.ids: tuple[str, ...] = ()
        self.ended = False
        self._label = label
        self._found: list[tuple[Reader, list[Change]]] = []
        self._opened: Opened | None = None
        self.covering: Covering | None = None

    @property
    def changes(self) -> tuple[Row, ...]:
        """The rows that it changed, in order."""
        return tuple(row for reader, changes in self._found for row in reader.rows(changes))

    @property
    def alive(self) -> bool:
        """Whether it is open, in a transaction that is."""
        return self._opened is not None and self._opened.savepoint.is_active

    @property
    def opened(self) -> Opened:
        """What it holds while it is open."""
        assert self._opened is not None
        return self._opened

    def begin(self, opened: Opened) -> None:
        """It is open from now on."""
        self._opened = opened
        dialect = opened.ledger.dialect
        self.covering = dialect.covering if isinstance(dialect, AppSqlite) else None

    def end(self) -> None:
        """It is open no more."""
        self._opened, self.covering, self.ended = None, None, True

    def journal(self, link: Link, ledger: AppLedger, *, last: bool) -> None:
        """Writes down what it has done so far; the `last` time, for all acts of the transaction, nothing is
        captured any more."""
        label = self._label
        id = ids.new() if self.ids else self.id
        entry = Entry(id, keeping.now(), label.group, label.point, label.tool, label.note)
        changes = ledger.journal_captured(link, entry, last=last)
        if changes:
            reader = Reader(ledger.dialect.name, ledger.catalog, ledger.rules)
            self._found.append((reader, changes))
            self.ids = (*self.ids, id)

    def forget(self) -> None:
        """Nothing of it stands."""
        self._found.clear()
        self.ids = ()


@dataclass(frozen=True, slots=True)
class Opened:
    """What an act holds while it is open."""

    session: Session | None
    connection: Connection
    station: Station
    ledger: AppLedger
    savepoint: Any


def noted(note: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A note that JSON can hold. Raises UsageError `journal.note`."""
    import json

    if note is None:
        return None
    try:
        kept: dict[str, Any] = json.loads(json.dumps(dict(note), allow_nan=False))
    except (TypeError, ValueError):
        raise UsageError("journal.note", "The note has what JSON can't hold.", "Give plain values.") from None
    return kept
