"""A database to be written to, on each engine there is."""

from __future__ import annotations

import pytest

from tests.rows.engines import Engine, SqliteEngine

ENGINES = {"sqlite": SqliteEngine}


@pytest.fixture(params=sorted(ENGINES))
def engine(request, tmp_path):
    """An empty database, with what a test needs to write, take back and look."""
    made: Engine = ENGINES[request.param](tmp_path)
    yield made
    made.close()
