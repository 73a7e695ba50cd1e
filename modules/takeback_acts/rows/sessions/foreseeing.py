"""Foreseeing: what a statement would read, change and call, from what SQLite asks leave for to compile it."""

from __future__ import annotations

import sqlite3

_OWN = "takeback_"
READING = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
_WRITING = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
_SCHEMA = frozenset({"sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema"})
_GIVING_ROWS = frozenset({"json_each", "json_tree"})


class Foreseen:
    """What a statement would read, change and call, itself and by what it sets off."""

    def __init__(self, kinds: dict[str, str]) -> None:
        self._kinds = kinds
        self.read: set[str] = set()
        self.written: set[str] = set()
        self.called: set[str] = set()
        self.forbidden = ""

    def ask(
        self, action: int, one: str | None, two: str | None, schema: str | None, source: str | None
    ) -> int:
        """SQLite's question, for each thing that a statement is going to do; `source` is what sets it off."""
        name = one or ""
        if action in _WRITING:
            self._writing(name, schema, source)
        elif action == sqlite3.SQLITE_READ:
            self._reading(name, two, source)
        elif action == sqlite3.SQLITE_FUNCTION:
            if not self._is_trigger(source):  # what the person's own triggers call is their business
                self.called.add((two or "").lower())
        elif action not in READING:
            self.forbidden = "it would do more than change rows"
        return sqlite3.SQLITE_DENY if self.forbidden else sqlite3.SQLITE_OK

    def _reading(self, table: str, column: str | None, source: str | None) -> None:
        if self._is_trigger(source):
            return
        lower = table.lower()
        if lower in _SCHEMA:
            if column != "ROWID":  # which is asked for when a function that gives rows is looked up
                self.forbidden = "the schema is not for statements to read"
        elif lower.startswith((_OWN, "pragma_")):
            self.forbidden = f"{table:.100} is not for statements to read"
        elif lower not in _GIVING_ROWS:
            self.read.add(table)

    def _writing(self, table: str, schema: str | None, source: str | None) -> None:
        kind = self._kinds.get(table, "")
        if table.lower() in _SCHEMA or kind == "view":
            return  # a function that gives rows is made known; what a view's trigger changes is asked as well
        if table.lower().startswith(_OWN):
            if not (schema == "temp" and source is not None and source.startswith(_OWN)):
                self.forbidden = f"{table:.100} is takeback's own"
        elif not (kind in ("virtual", "shadow") and self._is_trigger(source)):
            # An index for searching that a trigger keeps comes back by the same trigger.
            self.written.add(table)

    def _is_trigger(self, source: str | None) -> bool:
        return source is not None and (self._kinds.get(source) == "trigger" or source.startswith(_OWN))
