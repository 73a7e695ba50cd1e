"""An app's database for each driver there is."""

from __future__ import annotations

import pytest

from tests.rows.library.desks import ASYNC, DRIVERS, Desk


@pytest.fixture(params=DRIVERS)
async def desk(request, tmp_path):
    """An app with its tables and a journal."""
    made = _made(request, tmp_path)
    await made.create()
    yield made
    await made.close()


@pytest.fixture(params=ASYNC)
async def async_desk(request, tmp_path):
    """The same where only what is awaited matters."""
    made = _made(request, tmp_path)
    await made.create()
    yield made
    await made.close()


def _made(request, folder):
    server = None if "sqlite" in request.param else request.getfixturevalue("postgres")
    return Desk(request.param, folder, server)
