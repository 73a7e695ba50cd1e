"""SQLite's own session extension as a second opinion on what changed, and on what taking it back comes to.

It works on a copy of the file: two libraries of SQLite in one process must never have the same file open.
Keys that are equal without being the same, as NOCASE or 1 and 1.0, it loses rows of; there are none here.
"""

from __future__ import annotations

from typing import Any

import apsw
from hypothesis import given, settings
from hypothesis import strategies as st

from takeback_acts.rows.changes import Change
from tests.rows.engines import SqliteEngine

SCHEMA = (
    "CREATE TABLE parent (id INTEGER PRIMARY KEY, u TEXT UNIQUE, v)",
    "CREATE TABLE child (a INTEGER, b TEXT, up INTEGER REFERENCES parent (id) ON DELETE CASCADE, v,"
    " PRIMARY KEY (a, b))",
    "CREATE TABLE loose (id TEXT PRIMARY KEY, up INTEGER REFERENCES parent (id) ON DELETE SET NULL)",
    "CREATE TABLE tree (id INTEGER PRIMARY KEY, up INTEGER REFERENCES tree (id) ON DELETE CASCADE)"
    " WITHOUT ROWID",
    "INSERT INTO parent VALUES (1, 'a', 1), (2, 'b', x'00'), (3, NULL, 'text')",
    "INSERT INTO child VALUES (1, 'x', 1, 1.5), (1, 'y', 1, NULL), (2, 'x', 2, '1')",
    "INSERT INTO loose VALUES ('l', 1), ('m', 3)",
    "INSERT INTO tree VALUES (1, NULL), (2, 1), (3, 2)",
)
# The children first, as an insert needs its parent and a row that goes takes its own along.
TABLES = ("child", "loose", "tree", "parent")
NUMBER = st.integers(1, 5)
TEXT = st.sampled_from(["a", "b", "c", "x", "y"])
VALUE = st.one_of(st.none(), st.integers(-2, 2), st.just(1.5), TEXT, st.binary(max_size=2))


def _statement(sql: str, *values: Any) -> Any:
    return st.tuples(st.just(sql), st.tuples(*values))


OPERATIONS = st.one_of(
    _statement("INSERT INTO parent VALUES (?, ?, ?)", NUMBER, st.one_of(st.none(), TEXT), VALUE),
    _statement("INSERT OR REPLACE INTO child VALUES (?, ?, ?, ?)", NUMBER, TEXT, NUMBER, VALUE),
    _statement("INSERT INTO loose VALUES (?, ?)", TEXT, NUMBER),
    _statement("INSERT INTO tree VALUES (?, ?)", NUMBER, NUMBER),
    _statement("UPDATE parent SET u = ?, v = ? WHERE id = ?", TEXT, VALUE, NUMBER),
    _statement("UPDATE parent SET v = ?", VALUE),
    _statement("UPDATE child SET v = ?, up = ? WHERE a = ?", VALUE, NUMBER, NUMBER),
    _statement("UPDATE child SET b = ? WHERE a = ? AND b = ?", TEXT, NUMBER, TEXT),
    _statement("UPDATE tree SET up = ? WHERE id = ?", NUMBER, NUMBER),
    _statement("DELETE FROM parent WHERE id = ?", NUMBER),
    _statement("DELETE FROM child WHERE a = ?", NUMBER),
    _statement("DELETE FROM tree WHERE id = ?", NUMBER),
)
ACT = st.lists(OPERATIONS, min_size=1, max_size=6)


class Oracle:
    """A copy of the database in memory, as another SQLite has it."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._db = apsw.Connection(":memory:")
        self._db.execute("PRAGMA foreign_keys = ON")
        for statement in SCHEMA:
            self._db.execute(statement)

    def changeset(self, statements: Any) -> bytes:
        """What statements change, of those that the database accepts."""
        session = apsw.Session(self._db, "main")
        session.attach()
        for sql, values in statements:
            try:
                self._db.execute(sql, values)
            except apsw.ConstraintError:
                continue
        found = session.changeset()
        session.close()
        return found

    def apply(self, changeset: bytes) -> bool:
        """Applies a changeset without the actions of foreign keys; whether nothing stood against it."""
        clashed = []

        def clash(reason: int, change: Any) -> int:
            clashed.append(reason)
            return apsw.SQLITE_CHANGESET_ABORT

        try:
            flags = apsw.SQLITE_CHANGESETAPPLY_FKNOACTION
            apsw.Changeset.apply(changeset, self._db, conflict=clash, flags=flags)
        except (apsw.AbortError, apsw.ConstraintError):
            return False
        return not clashed

    def dump(self) -> dict[str, list[Any]]:
        """All rows, with the type of each value."""
        return {table: sorted(map(_typed, self._db.execute(f"SELECT * FROM {table}"))) for table in TABLES}


def _typed(row: Any) -> list[tuple[str, str]]:
    return [(type(value).__name__, repr(value)) for value in row]


def _ours(engine: SqliteEngine) -> dict[str, list[Any]]:
    return {table: sorted(map(_typed, engine.stranger(f"SELECT * FROM {table}"))) for table in TABLES}


def _rows(changes: list[Change]) -> set[tuple[str, str, str]]:
    """Rows that went and rows that came; a key that changes is, to the extension, one of each."""
    return {(name, repr(before), repr(after)) for change in changes for name, before, after in _parts(change)}


def _parts(change: Change) -> list[tuple[str, Any, Any]]:
    keys = {"parent": 1, "child": 2, "loose": 1, "tree": 1}[change.table]
    name, before, after = change
    if before is not None and after is not None and before[:keys] != after[:keys]:
        return [(name, before, None), (name, None, after)]
    return [(name, before, after)]


def _told(changeset: bytes, engine_rows: dict[tuple[str, Any], Any]) -> set[tuple[str, str, str]]:
    """The same of a changeset, which tells of an update only what it set: the rest is as it was."""
    found = set()
    for change in apsw.Changeset.iter(changeset):
        old = None if change.old is None else tuple(change.old)
        new = None if change.new is None else tuple(change.new)
        if old is not None and new is not None:
            keys = {"parent": 1, "child": 2, "loose": 1, "tree": 1}[change.name]
            old = engine_rows[change.name, old[:keys]]
            new = tuple(b if a is apsw.no_change else a for a, b in zip(new, old, strict=True))
        found.add((change.name, repr(old), repr(new)))
    return found


def _body(statements: Any, engine: SqliteEngine) -> Any:
    def body(link: Any) -> None:
        for sql, values in statements:
            engine.dialect.savepoint(link, "one")
            try:
                link.execute(sql, values)
            except engine.errors:
                engine.dialect.rollback_to(link, "one")
            else:
                engine.dialect.release(link, "one")

    return body


def _by_key(engine: SqliteEngine) -> dict[tuple[str, Any], Any]:
    keys = {"parent": 1, "child": 2, "loose": 1, "tree": 1}
    return {
        (table, tuple(row[: keys[table]])): tuple(row)
        for table in TABLES
        for row in engine.stranger(f"SELECT * FROM {table}")
    }


def test_the_session_extension_sees_the_same_changes_and_takes_the_same_back(tmp_path_factory):
    heard = []

    @settings(max_examples=150)
    @given(ACT, ACT)
    def check(statements, later):
        engine = SqliteEngine(tmp_path_factory.mktemp("db"))
        try:
            engine.schema(*SCHEMA)
            oracle = Oracle(engine)
            before = _by_key(engine)
            act = engine.act_of(_body(statements, engine))
            captured = list(engine.written.changes)
            changeset = oracle.changeset(statements)
            assert _ours(engine) == oracle.dump()
            assert _rows(captured) == _told(changeset, before)
            for sql, values in later:  # strangers, on both sides alike
                try:
                    engine.stranger(sql, values)
                except engine.errors:
                    continue
            oracle.changeset(later)
            assert _ours(engine) == oracle.dump()
            if captured:
                taken = engine.take_back(act)
                both = oracle.apply(apsw.Changeset.invert(changeset))
                heard.append((taken.clean, both))
                if taken.clean and both:
                    assert _ours(engine) == oracle.dump()
        finally:
            engine.close()

    check()
    assert heard.count((True, True)) > len(heard) / 10
    # The extension deletes a row only if all of it is as it was, compares no more than was set, and gives up
    # where what it should do is done already. What it takes back, so do we.
    assert (False, True) not in heard, heard
