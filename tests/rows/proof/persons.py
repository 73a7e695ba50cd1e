"""A person's database with tables that hang together, on either engine, as strangers' programs see it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

SCHEMA = """
CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT NOT NULL UNIQUE, balance INTEGER NOT NULL);
CREATE TABLE line (account INTEGER REFERENCES account (id) ON DELETE CASCADE, number INTEGER, what TEXT,
    PRIMARY KEY (account, number));
CREATE TABLE memo (id TEXT PRIMARY KEY, account INTEGER REFERENCES account (id) ON DELETE SET NULL,
    body TEXT);
CREATE TABLE trace (id {number}, what TEXT);
INSERT INTO account VALUES (1, 'ada', 100), (2, 'bob', 50), (3, 'cyd', 7);
INSERT INTO line VALUES (1, 1, 'one'), (1, 2, 'two'), (2, 1, 'uno');
INSERT INTO memo VALUES ('m1', 1, 'first'), ('m2', 3, NULL);
"""
_TRIGGER = {
    "sqlite": """
CREATE TRIGGER traced AFTER UPDATE OF owner ON account
BEGIN INSERT INTO trace (what) VALUES (OLD.owner || ' is ' || NEW.owner); END;
""",
    "postgresql": """
CREATE FUNCTION traced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO trace (what) VALUES (OLD.owner || ' is ' || NEW.owner); RETURN NULL; END $$;
CREATE TRIGGER traced AFTER UPDATE OF owner ON account FOR EACH ROW EXECUTE FUNCTION traced();
""",
}
_NUMBER = {"sqlite": "INTEGER PRIMARY KEY AUTOINCREMENT", "postgresql": "bigserial PRIMARY KEY"}
_NAMES = {
    "sqlite": "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
    " AND name NOT GLOB 'takeback_*' ORDER BY name",
    "postgresql": "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace ="
    " 'public'::regnamespace AND relname NOT LIKE 'takeback\\_%' ORDER BY 1",
}

Dump = dict[str, list[list[str]]]
Rows = dict[str, dict[tuple[str, ...], tuple[str, ...]]]


@dataclass(frozen=True)
class Person:
    """Where a database is: `place` is the file's folder, or the folder of a server's socket."""

    engine: str
    place: str
    database: str

    @property
    def url(self) -> str:
        """Its address, as it is given to takeback."""
        if self.engine == "sqlite":
            return f"sqlite:///{self.place}/{self.database}.db"
        return f"postgresql+psycopg://app@/{self.database}?host={quote(self.place, safe='')}"

    def create(self, schema: str = SCHEMA) -> None:
        """Makes its tables, by default those above with their trigger."""
        text = schema.format(number=_NUMBER[self.engine])
        text += _TRIGGER[self.engine] if schema is SCHEMA else ""
        if self.engine == "sqlite":
            with closing(sqlite3.connect(self._file)) as db:
                db.executescript(text)
        else:
            self.sql(text)

    def connect(self, *, role: str = "app") -> Any:
        """A connection of a stranger's, on which each statement is committed at once."""
        if self.engine == "sqlite":
            db = sqlite3.connect(self._file, isolation_level=None, timeout=20)
            db.execute("PRAGMA foreign_keys = ON")
            return db
        return psycopg.connect(host=self.place, dbname=self.database, user=role, autocommit=True)

    def sql(self, statement: str, params: Any = None) -> list[tuple[Any, ...]]:
        """One statement by a stranger's hand."""
        with closing(self.connect()) as db:
            cursor = db.execute(statement) if params is None else db.execute(statement, params)
            return list(cursor.fetchall()) if cursor.description is not None else []

    def dump(self) -> Dump:
        """All rows of the person's tables as text with their types, sorted."""
        with closing(self.connect()) as db:
            names = [name for (name,) in db.execute(_NAMES[self.engine]).fetchall()]
            return {name: sorted(map(list, self._texts(db, name))) for name in names}

    def rows(self) -> Rows:
        """The rows of each table by key, each value as the journal would have it written."""
        with closing(self.connect()) as db:
            return {
                table: {tuple(row[at] for at in shape): row for row in self._images(db, table, columns)}
                for table, columns, shape in self._shapes(db)
            }

    def journal(self) -> list[dict[str, Any]]:
        """The journal's entries, oldest first."""
        with closing(self.connect()) as db:
            cursor = db.execute("SELECT * FROM takeback_journal ORDER BY seq")
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def told(self) -> str:
        """All that `Person.heard` needs, as text."""
        return json.dumps(asdict(self))

    @classmethod
    def heard(cls, told: str) -> Person:
        """What `told` told of."""
        return cls(**json.loads(told))

    @property
    def _file(self) -> Path:
        return Path(self.place) / f"{self.database}.db"

    def _texts(self, db: Any, table: str) -> list[tuple[str, ...]]:
        if self.engine == "postgresql":
            return list(db.execute(f'SELECT t::text FROM "{table}" t').fetchall())
        columns = [row[1] for row in db.execute(f'PRAGMA table_xinfo("{table}")')]
        told = ", ".join(f'typeof("{c}") || \':\' || quote("{c}")' for c in columns)
        return list(db.execute(f'SELECT {told} FROM "{table}"').fetchall())

    def _shapes(self, db: Any) -> list[tuple[str, list[str], list[int]]]:
        found = []
        for (table,) in db.execute(_NAMES[self.engine]).fetchall():
            columns = db.execute(_COLUMNS[self.engine].replace("?", f"'{table}'")).fetchall()
            names = [name for name, _ in columns]
            keys = sorted((place, at) for at, (_, place) in enumerate(columns) if place)
            found.append((table, names, [at for _, at in keys]))
        return found

    def _images(self, db: Any, table: str, columns: list[str]) -> list[tuple[str, ...]]:
        if self.engine == "sqlite":
            told = ", ".join(f'"{name}"' for name in columns)
        else:
            told = ", ".join(f'"{name}"::text' for name in columns)
        return [
            tuple(written(value) for value in row)
            for row in db.execute(f'SELECT {told} FROM "{table}"').fetchall()
        ]


_COLUMNS = {
    "sqlite": "SELECT name, pk FROM pragma_table_xinfo(?) ORDER BY cid",
    "postgresql": "SELECT a.attname::text, coalesce(array_position(i.indkey::int2[], a.attnum) + 1, 0)"
    " FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary"
    " WHERE a.attrelid = (?)::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
}


def written(value: Any) -> str:
    """A value with its type, told apart from every other value."""
    if isinstance(value, bytes):
        return json.dumps({"x": value.hex()})
    return json.dumps(value)
