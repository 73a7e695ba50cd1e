"""One engine by itself, for what only it has, and a kernel over each."""

import pytest

from tests.rows.engines import PostgresEngine, SqliteEngine
from tests.rows.module.conftest import bench, database, make, settings

__all__ = ["bench", "database", "make", "settings"]


@pytest.fixture
def sqlite(tmp_path):
    made = SqliteEngine(tmp_path)
    yield made
    made.close()


@pytest.fixture
def postgresql(postgres):
    made = PostgresEngine(postgres)
    yield made
    made.close()
