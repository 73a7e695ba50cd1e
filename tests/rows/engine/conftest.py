"""SQLite alone, for what only it has."""

import pytest

from tests.rows.engines import SqliteEngine


@pytest.fixture
def sqlite(tmp_path):
    made = SqliteEngine(tmp_path)
    yield made
    made.close()
