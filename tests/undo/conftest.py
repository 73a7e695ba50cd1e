"""One house for each test."""

import pytest

from tests.undo.house import house


@pytest.fixture
async def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
async def at(home):
    async with house(home) as opened:
        yield opened
