"""A kernel with undo and rows over a fresh home, and a database of the person's, connected as `main`."""

import re
import sqlite3
from contextlib import closing, contextmanager

import pytest

from takeback.context import Scope
from takeback.kernel import Kernel
from takeback_acts.rows.module import RowsModule
from takeback_core.undo.module import UndoModule

SCHEMA = """
CREATE TABLE skill (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, level INTEGER, secret TEXT);
CREATE TABLE note (id INTEGER PRIMARY KEY, skill INTEGER REFERENCES skill (id) ON DELETE CASCADE, body TEXT);
CREATE TABLE tag (name TEXT PRIMARY KEY, weight REAL UNIQUE);
CREATE TABLE keyless (a INTEGER, b INTEGER);
INSERT INTO skill (title, level, secret) VALUES ('Python', 5, 's1'), ('SQL', 4, 's2'), ('Go', 1, 's3');
INSERT INTO note VALUES (10, 1, 'ten'), (11, 1, 'eleven'), (12, 2, 'twelve');
INSERT INTO tag VALUES ('red', 1.0), ('blue', 2.0);
"""


class Sqlite:
    """The person's file, and what they do to it with another program."""

    name = "sqlite"

    def __init__(self, folder):
        self.path = folder / "person.db"
        self.url = f"sqlite:///{self.path}"
        with closing(sqlite3.connect(self.path)) as db:
            db.executescript(SCHEMA)

    def sql(self, *statements):
        with closing(sqlite3.connect(self.path, isolation_level=None)) as db:
            db.execute("PRAGMA foreign_keys = ON")
            found = []
            for statement in statements:
                found = db.execute(statement).fetchall()
            return found

    @contextmanager
    def hands(self):
        """A connection that stays, and runs one statement at a time."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as db:
            yield db.execute

    def dump(self):
        with closing(sqlite3.connect(self.path)) as db:
            lines = [line for line in db.iterdump() if "takeback_" not in line]
        # A number that was used once is never given again.
        return [line for line in lines if "sqlite_sequence" not in line]

    def close(self):
        pass


class Postgres:
    """A database of the person's on the tests' own server."""

    name = "postgresql"

    def __init__(self, server):
        self.server = server
        self.database = server.fresh()
        self.url = server.url(self.database)
        self.sql(re.sub("INTEGER PRIMARY KEY AUTOINCREMENT", "serial PRIMARY KEY", SCHEMA))

    def sql(self, *statements):
        with self.server.connect(self.database, role="app") as db:
            found: list[tuple[object, ...]] = []
            for statement in statements:
                cursor = db.execute(statement)
                found = cursor.fetchall() if cursor.description is not None else []
            return found

    @contextmanager
    def hands(self):
        """A connection that stays, and runs one statement at a time."""
        with self.server.connect(self.database, role="app") as db:
            yield db.execute

    def dump(self):
        names = self.sql(
            "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace ="
            " 'public'::regnamespace AND c.relname NOT LIKE 'takeback\\_%' ORDER BY 1"
        )
        return [(name, sorted(self.sql(f"SELECT t::text FROM {name} t"))) for (name,) in names]

    def close(self):
        self.server.drop(self.database)


class Bench:
    """A running kernel, the person's database, and callers."""

    def __init__(self, kernel, database):
        self.kernel = kernel
        self.database = database
        self.sql = database.sql
        self.dump = database.dump

    def agent(self, name="juno", *, session="s1", turn="t1", tables=("main.*",)):
        scope = Scope(tables=tuple(tables))
        return self.kernel.enter(f"mcp:agent:{name}", session=session, turn=turn, scope=scope)

    def person(self, **more):
        return self.kernel.enter("cli:person", **more)

    async def undo(self, act, **more):
        return await self.person(present=bool(more.get("force"))).call("undo.run", id=act, **more)

    async def preview(self, act, **more):
        return (await self.person(present=bool(more.get("force"))).call("undo.preview", id=act, **more)).plan

    async def acts(self):
        return (await self.person().undo.list()).acts

    def journal(self):
        """The journal's entries: kind, and whether each is taken back."""
        return self.sql("SELECT kind, undone_in IS NOT NULL FROM takeback_journal ORDER BY seq")

    def mark(self, *statement):
        """A statement with the engine's marks for its parameters."""
        (text,) = statement
        marks = iter(range(1, 100))
        return text if self.database.name == "sqlite" else re.sub(r"\?", lambda _: f"${next(marks)}", text)


@pytest.fixture(params=["sqlite", "postgresql"])
def make(request):
    """Makes a database like all others, on each engine."""
    if request.param == "sqlite":
        return Sqlite
    server = request.getfixturevalue("postgres")
    return lambda folder: Postgres(server)


@pytest.fixture
def database(make, tmp_path):
    made = make(tmp_path)
    yield made
    made.close()


@pytest.fixture
def settings():
    return {}


@pytest.fixture
async def bench(tmp_path, database, settings):
    async with Kernel(tmp_path / "home", settings=settings, modules=[UndoModule, RowsModule]) as kernel:
        made = Bench(kernel, database)
        await made.person().call("rows.connect", name="main", url=database.url)
        yield made
