"""A database to be written to, on each engine there is."""

from __future__ import annotations

import pytest

from tests.rows import server
from tests.rows.engines import Engine, PostgresEngine, SqliteEngine


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL of our own, one for all tests."""
    made = server.make()
    yield made
    made.stop()


@pytest.fixture(params=["postgresql", "sqlite"])
def engine(request, tmp_path):
    """An empty database, with what a test needs to write, take back and look."""
    made: Engine
    if request.param == "sqlite":
        made = SqliteEngine(tmp_path)
    else:
        made = PostgresEngine(request.getfixturevalue("postgres"))
    yield made
    made.close()
