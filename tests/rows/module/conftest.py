"""A kernel with undo and rows over a fresh home, and a SQLite file of the person's that is connected as `main`."""

import sqlite3
from contextlib import closing

import pytest

from takeback.context import Scope
from takeback.kernel import Kernel
from takeback_acts.rows.module import RowsModule
from takeback_core.undo.module import UndoModule

SCHEMA = """
CREATE TABLE skill (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, level INTEGER, secret TEXT);
CREATE TABLE note (id INTEGER PRIMARY KEY, skill INTEGER REFERENCES skill (id) ON DELETE CASCADE, body TEXT);
CREATE TABLE tag (name TEXT PRIMARY KEY, weight REAL UNIQUE) WITHOUT ROWID;
CREATE TABLE keyless (a, b);
INSERT INTO skill VALUES (1, 'Python', 5, 's1'), (2, 'SQL', 4, 's2'), (3, 'Go', 1, 's3');
INSERT INTO note VALUES (10, 1, 'ten'), (11, 1, 'eleven'), (12, 2, 'twelve');
INSERT INTO tag VALUES ('red', 1.0), ('blue', 2.0);
"""


class Bench:
    """A running kernel, the person's file, and callers."""

    def __init__(self, kernel, path):
        self.kernel = kernel
        self.path = path

    def agent(self, name="juno", *, session="s1", turn="t1", tables=("main.*",)):
        scope = Scope(tables=tuple(tables))
        return self.kernel.enter(f"mcp:agent:{name}", session=session, turn=turn, scope=scope)

    def person(self, **more):
        return self.kernel.enter("cli:person", **more)

    async def undo(self, act, **more):
        return await self.person(present=bool(more.get("force"))).call("undo.run", id=act, **more)

    async def preview(self, act, **more):
        return (await self.person(present=bool(more.get("force"))).call("undo.preview", id=act, **more)).plan

    def sql(self, *statements):
        """What the person does by hand, with another program; the rows of the last statement."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as db:
            db.execute("PRAGMA foreign_keys = ON")
            found = []
            for statement in statements:
                found = db.execute(statement).fetchall()
            return found

    def dump(self):
        """Everything in the person's own tables."""
        with closing(sqlite3.connect(self.path)) as db:
            return [line for line in db.iterdump() if "takeback_" not in line]

    def journal(self):
        """The journal's entries: kind and whether each is taken back."""
        return self.sql("SELECT kind, undone_in IS NOT NULL FROM takeback_journal ORDER BY seq")


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "person.db"
    with closing(sqlite3.connect(file)) as db:
        db.executescript(SCHEMA)
    return file


@pytest.fixture
def settings():
    return {}


@pytest.fixture
async def bench(tmp_path, path, settings):
    async with Kernel(tmp_path / "home", settings=settings, modules=[UndoModule, RowsModule]) as kernel:
        made = Bench(kernel, path)
        await made.person().call("rows.connect", name="main", url=f"sqlite:///{path}")
        yield made
