"""A desk over a home with a short name, so that its sockets lie within it."""

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.cli.conftest import cli
from tests.hooks.desk import Desk, open_kernel, repository

__all__ = ["cli"]


@pytest.fixture
def place():
    """A short folder for a home."""
    folder = Path(tempfile.mkdtemp(prefix="tb-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def root(place):
    return repository(place.resolve() / "work")


@pytest.fixture
async def desk(place, root):
    async with open_kernel(place / "home") as kernel:
        yield Desk(kernel, root)
