"""One house for each test."""

import pytest

from tests.mcp.house import house


@pytest.fixture
async def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
async def door(home):
    async with house(home) as opened:
        yield opened
